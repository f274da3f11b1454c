"""A broker that has just begun to lead a partition does not know yet where it ends."""

import pytest
from confluent_kafka import TopicPartition

from espha.kafka import reader
from espha.kafka.reader import Ends, LogError, Offsets

UNKNOWN = -1001


class Brokers:
    """Answers with these offsets, one after the other; the last one for ever."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = list(offsets)

    def offsets_for_times(
        self, asked: list[TopicPartition], timeout: float
    ) -> list[TopicPartition]:
        """Answer at once."""
        offset = self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]
        return [TopicPartition(asked[0].topic, asked[0].partition, offset)]


def offsets(monkeypatch: pytest.MonkeyPatch, *answers: int) -> Offsets:
    brokers = Brokers(*answers)
    monkeypatch.setattr(reader, "Consumer", lambda settings: brokers)
    monkeypatch.setattr(reader, "_ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(reader, "_ASK_AGAIN_AT_MOST_S", 0.001)
    return Offsets("b")


def test_it_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offsets(monkeypatch, UNKNOWN, UNKNOWN, 7).end("t") == 7
    assert offsets(monkeypatch, 5, UNKNOWN, 5, 9).ends("t") == Ends(5, 9)


def test_one_that_never_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LogError, match=r"topic t: .*high watermark"):
        offsets(monkeypatch, UNKNOWN).end("t", limit_s=0.05)


@pytest.mark.parametrize(("answers", "clients"), [((3,), 2), ((UNKNOWN, 3), 3), ((UNKNOWN,), 2)])
def test_what_is_kept_warm_answers(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[int, ...], clients: int
) -> None:
    """A client that does not is replaced, once; a question that comes then makes no other one."""
    asker, made = offsets(monkeypatch, *answers), []
    brokers = Brokers(*answers)

    def make(_: object) -> Brokers:
        made.append(brokers)
        return brokers

    monkeypatch.setattr(reader, "Consumer", make)
    asker.keep_warm("t")
    assert len(made) == clients
    if answers[-1] != UNKNOWN:
        assert asker.ends("t") == Ends(3, 3)
        assert len(made) == clients
