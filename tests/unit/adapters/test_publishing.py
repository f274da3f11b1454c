"""What the active input adapter makes of its source: transactions, and what it says."""

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from espha.adapters import publishing
from espha.adapters.config import Held, Job
from espha.adapters.file_input.position import Place, Position
from espha.adapters.formats.refused import not_a_row
from espha.kafka.writer import FencedWriter, Record
from espha.protocol.activity import Doing
from espha.protocol.child_side import Control
from espha.protocol.records import SOURCE_HEADER
from espha.protocol.sizes import TRANSACTION_BYTES
from espha.protocol.states import Role, Step
from espha.protocol.status import InputProgress, Lag

Poll = Callable[[], Sequence[tuple[bytes, Position]]]


class _Fakes:
    """A source that does what it is told, a writer and a control that remember."""

    name = "in.csv"

    def __init__(self, *polls: Poll) -> None:
        self._polls = list(polls)
        self.transactions: list[list[Record]] = []
        self.said: list[str] = []
        self.closed = 0
        self.told: list[int] = []
        self.progress: list[InputProgress] = []
        self.waiting = 0
        self.proof_wanted = threading.Event()

    @property
    def role(self) -> Role:
        return Role.ACTIVE if self._polls else Role.STANDBY

    @property
    def position(self) -> Position:
        return Position("memory", "in.csv")

    def poll(self) -> Sequence[tuple[bytes, Position]]:
        return self._polls.pop(0)() if self._polls else []

    def advance(self, position: Mapping[str, Any], /) -> None:
        raise AssertionError

    def behind(self) -> Lag:
        return Lag(self.waiting, "records")

    def committed(self) -> None:
        self.told.append(len(self.transactions))

    def close(self) -> None:
        self.closed += 1

    def commit(self, records: Sequence[Record]) -> None:
        self.transactions.append(list(records))

    def report(self, _: object, __: bool, progress: InputProgress, message: str = "") -> None:
        self.said.append(message)
        self.progress.append(progress)

    def run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Publish until the source has nothing more to do."""
        monkeypatch.setattr(publishing, "_TRANSACTION_S", 60.0)
        monkeypatch.setattr(publishing, "Backoff", _NoPause)
        control = cast(Control, self)
        job = Job("memory", "", "x", cast(Any, None), "x.I", "x.P", control)
        publishing._Publisher(job, self, cast(FencedWriter, self)).run()


class _NoPause:
    def next(self) -> float:
        return 0.0

    def reset(self) -> None:
        pass


def rows(first: int, count: int, size: int = 10) -> Poll:
    """Return what yields rows of a size, with their numbers as offsets."""
    places = [Place(offset=number) for number in range(first, first + count)]
    return lambda: [(b"x" * size, Position("memory", "in.csv", place)) for place in places]


def refused(error: Exception) -> Poll:
    """Return what fails."""

    def poll() -> Sequence[tuple[bytes, Position]]:
        raise error

    return poll


def offsets(transaction: list[Record]) -> list[int]:
    """Return the offsets that the rows of a transaction carry."""
    found = [dict(record.headers).get(SOURCE_HEADER) for record in transaction]
    return [Position.from_header(header).place.offset for header in found if header]


def test_what_is_there_goes_into_one_transaction_with_its_last_position(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fakes = _Fakes(rows(0, 3), rows(3, 2), list, rows(5, 1), list)
    fakes.run(monkeypatch)
    assert [offsets(each) for each in fakes.transactions] == [[0, 1, 2, 3, 4], [5]]
    kept = [each[0] for each in fakes.transactions]
    assert {record.topic for record in kept} == {"x.P"}
    assert [Position.from_header(record.value).place.offset for record in kept] == [4, 5]


def test_the_source_learns_of_each_commit_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = _Fakes(rows(0, 3), list, rows(3, 2), list)
    fakes.run(monkeypatch)
    assert fakes.told == [1, 2]


def test_a_transaction_is_closed_at_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    quarter = TRANSACTION_BYTES // 4
    fakes = _Fakes(*(rows(number, 1, quarter) for number in range(6)), list)
    fakes.run(monkeypatch)
    assert [len(offsets(each)) for each in fakes.transactions] == [4, 2]


def test_a_transaction_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = _Fakes(rows(0, 1), rows(1, 1), list)
    monkeypatch.setattr("time.monotonic", itertools.count(0, 100).__next__)
    fakes.run(monkeypatch)
    assert [offsets(each) for each in fakes.transactions] == [[0], [1]]


@pytest.mark.parametrize("between", [Held("it is shorter"), OSError(5, "cannot be read")])
def test_rows_before_an_error_are_published_and_what_waits_is_said_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch, between: Exception
) -> None:
    fakes = _Fakes(rows(0, 1), refused(between), refused(between), list, rows(1, 1), list)
    fakes.run(monkeypatch)
    assert [offsets(each) for each in fakes.transactions] == [[0], [1]]
    words = [said for said in fakes.said if said]
    assert len(words) == 1
    assert words[0].startswith("in.csv: ")
    assert fakes.said[-1] == ""
    assert fakes.closed == (0 if isinstance(between, Held) else 1)


def test_the_status_counts_bad_rows_and_says_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Position("memory", "/data/in.csv", Place(line=3, offset=70))
    values = [b"I,N,1", not_a_row("line 2", b"x"), not_a_row("line 3", b"x", "json")]
    fakes = _Fakes(lambda: [(value, place) for value in values], list)
    fakes.waiting = 5
    fakes.run(monkeypatch)
    told = fakes.progress[-1]
    assert (told.rows, told.rejected, told.position) == (3, 2, "in.csv, line 3, byte 70")
    assert (told.lag, told.lag_unit) == (5, "records")


def test_what_waits_is_looked_at_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes, now = _Fakes(), [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    lag = publishing._Lag(fakes)
    for fakes.waiting, now[0], seen in ((1, 100.0, 1), (2, 100.5, 1), (3, 101.0, 3)):
        assert lag.now() == Lag(seen, "records")


def test_a_source_that_cannot_be_looked_at_has_no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = _Fakes()
    monkeypatch.setattr(fakes, "behind", refused(OSError(5, "no")))
    assert publishing._Lag(fakes).now() is None


class _Seen:
    """A source that notes, in each call, what the adapter says that it does."""

    name = "in.csv"

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self.said: list[Step | None] = []
        self._note()

    def _note(self) -> None:
        told = self._doing.told()
        self.said.append(told.step if told else None)

    @property
    def position(self) -> Position:
        self._note()
        return Position("memory", "in.csv")

    def poll(self) -> Sequence[tuple[bytes, Position]]:
        self._note()
        raise OSError(5, "cannot be read")

    def advance(self, position: Mapping[str, Any], /) -> None:
        self._note()

    def behind(self) -> Lag | None:
        self._note()
        return None

    def committed(self) -> None:
        self._note()

    def close(self) -> None:
        self._note()


class _Nothing:
    """Positions and a writer of which nothing comes."""

    last, kept = None, True

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def learn_leaders(self, *_: object) -> None:
        """Ask nobody."""

    def fence(self) -> None:
        """Shut out nobody."""

    def follow(self) -> bool:
        """Hear that the other one has moved."""
        return True

    def read_to_end(self) -> bool:
        """Find more."""
        return True


def test_an_adapter_tells_when_it_is_at_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a standby, in its take-over and when it is active: a mount may be dead here only."""
    for name in ("Positions", "FencedWriter"):
        monkeypatch.setattr(publishing, name, _Nothing)
    doing, elected, role = Doing(), iter([False, True]), iter([Role.ACTIVE, Role.STANDBY])
    made: list[_Seen] = []

    class Told:
        """A supervisor that elects this one, and ends it behind its first poll."""

        def __init__(self) -> None:
            self.proof_wanted = threading.Event()
            self.doing = doing

        @property
        def role(self) -> Role:
            return next(role)

        def wait_active(self, _: float) -> bool:
            assert doing.told() is None, "it waits, and is not at its source"
            return next(elected)

        def report(self, *_: object, **__: object) -> None:
            """Hear nothing."""

    def opened(_: object) -> _Seen:
        made.append(_Seen(doing))
        return made[-1]

    job = Job("memory", "", "x", cast(Any, None), "x.I", "x.P", cast(Control, Told()))
    publishing.publish(job, opened)
    (seen,) = made
    assert set(seen.said) == {Step.SOURCE}
    assert doing.told() is None


def test_each_call_of_a_source_is_a_step_and_what_is_between_them_is_none() -> None:
    """One that does not come back is found by it; Kafka may be away for as long as it likes."""
    doing = Doing()
    made: list[_Seen] = []

    def opened(_: object) -> _Seen:
        made.append(_Seen(doing))
        return made[-1]

    source = publishing._Watched(doing, opened, None)
    with pytest.raises(OSError, match="cannot be read"):
        source.poll()
    assert doing.told() is None
    source.advance({})
    source.behind()
    source.committed()
    source.close()
    assert isinstance(source.position, Position)
    (seen,) = made
    assert seen.said == [Step.SOURCE] * 7
    assert doing.told() is None


def test_one_that_may_have_been_replaced_finds_out_though_it_has_no_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would say for ever that it is active, and whoever sends to it would reach it."""
    fakes = _Fakes(lambda: [], lambda: [])
    fakes.proof_wanted.set()
    fakes.run(monkeypatch)
    ((only,),) = fakes.transactions
    assert (only.topic, only.key) == ("x.P", b"x.I memory")
    assert not fakes.proof_wanted.is_set()


@pytest.mark.parametrize("trouble", [Held("it is gone"), OSError("it is away")])
def test_one_that_may_have_been_replaced_finds_out_though_its_source_is_in_trouble(
    monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    fakes = _Fakes(refused(trouble), refused(trouble))
    fakes.proof_wanted.set()
    fakes.run(monkeypatch)
    ((kept,),) = fakes.transactions
    assert kept.topic == "x.P"
    assert not fakes.proof_wanted.is_set()
