"""What an output adapter says of how far it is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from espha.adapters import copying
from espha.adapters.config import Job
from espha.adapters.copying import Taken
from espha.backoff import Backoff
from espha.protocol.activity import Doing
from espha.protocol.states import EngineState, Step
from espha.protocol.status import OutputProgress
from support.far_kafka import FarMessage


class Ended(Exception):  # noqa: N818 - it ends the test
    """There are no more records."""


class Topic:
    """A topic, and a consumer of it that is handed what comes, and `None` for a second without."""

    def __init__(self, end: int, *messages: FarMessage | None) -> None:
        self.end = end
        self._messages = list(messages)

    def poll(self, _: float) -> FarMessage | None:
        """Return the next one."""
        if not self._messages:
            raise Ended
        return self._messages.pop(0)

    def consume(self, count: int, _: float) -> list[FarMessage]:
        """Return nothing more."""
        return []

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        """Return where the topic ends."""
        return 0, self.end


class Slow:
    """A target that gathers records: it has those below `sure`."""

    def __init__(self, *failures: OSError) -> None:
        self.offset, self.sure = 0, 100
        self.doing = Doing()
        self.steps: list[Step | None] = []
        """What the adapter said that it does, at each call."""
        self._failures = list(failures)

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Take them, or fail."""
        self._note_step()
        if records and self._failures:
            raise self._failures.pop(0)
        self.offset = min(offset, self.sure)

    def settle(self) -> None:
        """There is nothing to do."""
        self._note_step()

    def _note_step(self) -> None:
        told = self.doing.told()
        self.steps.append(told.step if told else None)

    def progress(self, rows: int) -> OutputProgress:
        """Return what is known."""
        return OutputProgress(rows=rows, offset=self.offset)


def said(
    monkeypatch: pytest.MonkeyPatch, topic: Topic, target: Slow, healthy: list[bool] | None = None
) -> list[tuple[str, OutputProgress]]:
    """Copy what there is; return what was reported, and add whether all was well to `healthy`."""
    reports: list[tuple[str, OutputProgress]] = []

    def report(
        _: EngineState, in_sync: bool, progress: OutputProgress, *, message: str = ""
    ) -> None:
        reports.append((message, progress))
        if healthy is not None:
            healthy.append(in_sync)

    @contextmanager
    def reader(*_: object) -> Iterator[Topic]:
        yield topic

    offsets = SimpleNamespace(topic_id=lambda _: "id", first=lambda _: 0)
    monkeypatch.setattr(copying, "Offsets", lambda _: offsets)
    monkeypatch.setattr(copying, "open_reader", reader)
    control = cast(Any, SimpleNamespace(report=report, doing=target.doing))
    job = Job("result", "", "x", cast(Any, None), "x.O", "x.P", control)
    with pytest.raises(Ended):
        copying.copy(job, "out.csv", lambda _: target)
    return reports


def record(offset: int) -> FarMessage:
    made = FarMessage(0, offset, b"I,N,1")
    made.headers = lambda: None  # type: ignore[attr-defined]
    return made


def end(offset: int) -> FarMessage:
    return FarMessage(0, offset, None, KafkaError(KafkaError._PARTITION_EOF))


def test_the_lag_is_what_the_target_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker of the last transaction is no record that anybody waits for."""
    reports = said(monkeypatch, Topic(4, record(0), record(1), record(2), end(4)), Slow())
    assert [progress.lag for _, progress in reports] == [None, 3, 2, 1, 0]
    assert reports[-1][1].position == "offset 3"
    assert reports[-1][1].lag_unit == "records"


def test_what_a_target_only_gathers_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Slow()
    target.sure = 1
    reports = said(monkeypatch, Topic(4, record(0), record(1), record(2), end(4)), target)
    assert reports[-1][1].lag == 3


def test_what_fails_is_said_with_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "Backoff", _NoPause)
    reports = said(monkeypatch, Topic(9, record(7)), Slow(OSError(28, "No space left on device")))
    assert [message for message, _ in reports] == [
        "",
        "out.csv: No space left on device; trying again, nothing is lost",
        "",
    ]
    assert [progress.lag for _, progress in reports] == [None, 9, 1]


class _NoPause:
    def next(self) -> float:
        return 0.0

    def reset(self) -> None:
        pass


class Backlog(Topic):
    """A topic with more than a batch holds, all of it in the client already."""

    def consume(self, count: int, _: float) -> list[FarMessage]:
        """Return so many of those that are there."""
        more = [one for one in self._messages[:count] if one is not None]
        del self._messages[:count]
        return more


class Sizes(Slow):
    """A target that counts what it is given at once."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[int]] = []

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Take them."""
        super().append(records, offset)
        self.batches += [[len(one.value) for one in records]] if records else []


@pytest.mark.parametrize("size, most", [(1 << 20, 8), (10, 5_003)])
def test_a_batch_is_bounded_in_rows_and_bytes(
    monkeypatch: pytest.MonkeyPatch, size: int, most: int
) -> None:
    """Rows of 1 MiB: 8 MiB of them at most are held at once, and none is left out."""
    count = 3 * most + 1
    messages = []
    for offset in range(count):
        made = record(offset)
        made.value = lambda: bytes(size)  # type: ignore[method-assign]
        messages.append(made)
    target = Sizes()
    said(monkeypatch, Backlog(count, *messages), target)
    assert sum(map(len, target.batches)) == count
    assert max(map(len, target.batches)) <= most
    assert max(map(sum, target.batches)) <= 8 << 20
    assert len(target.batches) <= 8


class Faltering(Slow):
    """A target that takes one record at a time, and fails before each."""

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Take one more, then fail."""
        if self.offset < offset:
            self.offset += 1
            raise OSError("answered with HTTP 503")


def test_pauses_stay_short_while_rows_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 25 requests of a batch some fail where each fifth does: that is no reason to rest."""
    pauses: list[float] = []

    class Noted(Backoff):
        def next(self) -> float:
            pauses.append(super().next())
            return 0.0

    monkeypatch.setattr(copying, "Backoff", Noted)
    healthy: list[bool] = []
    said(monkeypatch, Topic(30, record(29)), Faltering(), healthy)
    assert len(pauses) == 30
    assert set(pauses) == {0.1}
    assert all(healthy)


def test_only_at_its_target_an_adapter_can_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Slow(OSError("full"))
    said(monkeypatch, Topic(1, record(0), end(1)), target)
    assert target.steps
    assert set(target.steps) == {Step.TARGET}
    assert target.doing.told() is None
