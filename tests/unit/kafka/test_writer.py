"""The fenced writer, without brokers: how it becomes the holder."""

import threading
from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from espha.kafka import writer
from espha.kafka.writer import FencedWriter, WriterFailed


class Client:
    """A client that becomes the holder once it was asked about topics so often."""

    def __init__(self, asked: int, error: KafkaError | None = None) -> None:
        self.asked: list[str] = []
        self._enough, self._needs, self._error = threading.Event(), asked, error

    def list_topics(self, topic: str, _: float) -> None:
        """Answer, or fail."""
        self.asked.append(topic)
        if len(self.asked) >= self._needs:
            self._enough.set()
        if len(self.asked) == 1:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def init_transactions(self, timeout_s: float) -> None:
        """Wait, or fail."""
        assert self._enough.wait(timeout_s)
        if self._error:
            raise KafkaException(self._error)


@pytest.fixture
def fenced(monkeypatch: pytest.MonkeyPatch) -> FencedWriter:
    """A writer whose client is played."""
    monkeypatch.setattr(writer, "Producer", lambda _: None)
    return FencedWriter("", "id")


def held(made: FencedWriter, client: Client, *topics: str) -> Client:
    made._producer = cast(Producer, client)
    made._topics = topics
    made.fence()
    return client


def test_the_client_is_asked_about_a_topic_until_it_is_the_holder(fenced: FencedWriter) -> None:
    """It tries anew at each answer; by itself it would wait for half a second."""
    assert held(fenced, Client(3), "t", "p").asked[:3] == ["t", "t", "t"]


def test_nothing_is_asked_about_topics_that_nobody_has_named(fenced: FencedWriter) -> None:
    """Some brokers would make a topic of any name."""
    client = Client(1)
    client._enough.set()
    assert held(fenced, client).asked == []


def test_nobody_asks_any_more_when_it_has_failed(fenced: FencedWriter) -> None:
    client = Client(1, KafkaError(KafkaError._TIMED_OUT))
    with pytest.raises(WriterFailed, match="fencing under transactional id 'id'"):
        held(fenced, client, "t")
    urging = [one for one in threading.enumerate() if one.name == "urge"]
    for one in urging:
        one.join(30)
    assert not any(one.is_alive() for one in urging)
