"""The fenced writer, without brokers: how it becomes the holder, and its slow commits."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from espha.kafka import writer
from espha.kafka.reader import LogError
from espha.kafka.writer import Fenced, FencedWriter, Record, WriterFailed


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


class Cluster:
    """A cluster on which whoever fences last may commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.did: list[str] = []
        self.records: list[Record] = []
        self.made = 0
        self.meanwhile: Record | None = None
        """What a successor commits before the next fence."""
        self.away = False
        monkeypatch.setattr(writer, "Producer", lambda _: self._client())
        monkeypatch.setattr(writer, "Offsets", lambda *_: self)
        monkeypatch.setattr(writer, "last_matching", self._last)

    def _client(self) -> Any:
        self.made += 1
        name, held = self.made, list[Record]()

        def produce(topic: str, value: bytes, *, key: bytes | None, **_: object) -> None:
            held.append(Record(topic, value, key=key))

        def commit(_: float) -> None:
            self.did.append(f"{name} commits")
            self.records += held
            held.clear()

        def fence(_: float) -> None:
            self.did.append(f"{name} fences")
            if self.meanwhile:
                self.records.append(self.meanwhile)

        return SimpleNamespace(
            begin_transaction=lambda: None,
            produce=produce,
            commit_transaction=commit,
            init_transactions=fence,
        )

    def settled(self, topic: str) -> int:
        """Wait for nobody."""
        if self.away:
            raise LogError(f"topic {topic}: no answer")
        return len(self.records)

    def _last(self, _: str, topic: str, wanted: Any, __: object) -> Message | None:
        for one in reversed(self.records):
            found = SimpleNamespace(key=lambda one=one: one.key, value=lambda one=one: one.value)
            if one.topic == topic and wanted(found):
                return cast(Message, found)
        return None


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit is one that has taken long."""
    monkeypatch.setattr(writer, "_SLOW_S", -1.0)


def batch(number: int) -> list[Record]:
    return [Record("p", b"%d" % number, key=b"me"), Record("t", b"row")]


def test_a_quick_commit_is_followed_by_the_next_one(cluster: Cluster) -> None:
    mine = FencedWriter("", "id")
    mine.commit(batch(1))
    mine.commit(batch(2))
    assert cluster.did == ["1 commits", "1 commits"]


@pytest.mark.usefixtures("slow")
def test_a_slow_commit_is_followed_by_a_new_epoch(cluster: Cluster) -> None:
    """KAFKA-17754: the late half of it must not end the next one."""
    mine = FencedWriter("", "id")
    mine.commit(batch(1))
    cluster.records.append(Record("p", b"9", key=b"another"))
    mine.commit(batch(2))
    assert cluster.did == ["1 commits", "2 fences", "2 commits"]


@pytest.mark.usefixtures("slow")
def test_whoever_has_been_replaced_meanwhile_learns_it_and_shuts_nobody_out(
    cluster: Cluster,
) -> None:
    mine = FencedWriter("", "id")
    mine.commit(batch(1))
    cluster.records.append(Record("p", b"2", key=b"me"))
    with pytest.raises(Fenced, match="'id': a newer holder has written to topic p meanwhile"):
        mine.commit(batch(2))
    assert cluster.did == ["1 commits"]


@pytest.mark.usefixtures("slow")
def test_whoever_is_replaced_right_before_the_new_epoch_learns_it(cluster: Cluster) -> None:
    mine = FencedWriter("", "id")
    mine.commit(batch(1))
    cluster.meanwhile = Record("p", b"2", key=b"me")
    with pytest.raises(Fenced):
        mine.commit(batch(2))
    assert cluster.did == ["1 commits", "2 fences"]


@pytest.mark.usefixtures("slow")
def test_holders_may_have_more_than_one_key(cluster: Cluster) -> None:
    mine = FencedWriter("", "id", mine=lambda key: key.startswith(b"m"))
    mine.commit(batch(1))
    cluster.records.append(Record("p", b"1", key=b"mu"))
    with pytest.raises(Fenced):
        mine.commit(batch(2))


@pytest.mark.usefixtures("slow")
def test_by_records_without_a_key_nobody_is_known(cluster: Cluster) -> None:
    """Who could not tell a successor must not shut one out."""
    mine = FencedWriter("", "id")
    mine.commit([Record("t", b"1")])
    mine.commit([Record("t", b"2")])
    assert cluster.did == ["1 commits", "1 commits"]


@pytest.mark.usefixtures("slow")
def test_whoever_cannot_look_for_a_successor_does_not_go_on(cluster: Cluster) -> None:
    mine = FencedWriter("", "id")
    mine.commit(batch(1))
    cluster.away = True
    with pytest.raises(WriterFailed, match="no answer"):
        mine.commit(batch(2))
    assert cluster.did == ["1 commits"]
