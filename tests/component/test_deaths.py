"""What supervisors tell each other, through ZooKeeper, of engines that died in a batch."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from espha.ha.deaths import DeathRegister
from espha.ha.zookeeper import Secret
from espha.protocol.deaths import ZNODE, Deaths, UnderWay, UnderWayNote
from espha.protocol.order import Range
from support.servers import ZooKeeper, wait_until

pytestmark = pytest.mark.component


class Seat:
    """A supervisor with its engine, as far as deaths go."""

    def __init__(self, servers: str, root: str, note: Path, token: str = "") -> None:
        self.note = UnderWayNote(note)
        self.register = DeathRegister(note.name, root, self.note, Secret(token))
        self.told: list[Deaths] = []
        self._servers, self.root = servers, root
        self.client: KazooClient | None = None

    def tell_deaths(self, deaths: Deaths) -> None:
        """Be told, as the engine."""
        self.told.append(deaths)

    def live(self) -> None:
        """Begin a life."""
        self.client = KazooClient(hosts=self._servers)
        self.client.start()
        self.client.ensure_path(self.root)
        self.register.follow(self.client, self)

    def die(self, after: int, *, records: int = 5, whole: bool = False) -> None:
        """End a life in the middle of a batch; as a whole: the supervisor counts nothing."""
        self.note.open()
        inputs = (Range("t.I", 10, 10 + records),)
        self.note.write(UnderWay(log="id", after=after, records=records, inputs=inputs))
        if not whole:
            self.register.count()
        self.end()

    def end(self) -> None:
        """End a session, right behind what it has been asked for last."""
        if self.client:
            self.client.stop()
            self.client.close()
            self.client = None


Seats = Callable[..., Seat]


@pytest.fixture
def seat(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Seats]:
    """Make supervisors of one deployment."""
    root = f"/ESP/test/{uuid.uuid4().hex}/engines"
    with ExitStack() as ends:

        def made(name: str, token: str = "") -> Seat:
            one = Seat(zookeeper.connect, root, tmp_path / name, token)
            ends.callback(one.end)
            return one

        yield made


def test_deaths_are_counted_over_all_engines(seat: Seats) -> None:
    """Each sees what the others have counted, whoever began, and whoever came when."""
    first, second, third = seat("a"), seat("b"), seat("c")
    first.live()
    second.live()
    first.die(after=7)
    wait_until(lambda: [each.count for each in second.told] == [1], 30, "the first death")
    second.die(after=7)
    third.live()
    wait_until(lambda: [each.count for each in third.told] == [2], 30, "the second death")
    assert third.told[-1].by == "b"
    first.live()
    wait_until(
        lambda: [each.count for each in first.told[-1:]] == [2], 30, "what the other counted"
    )
    assert first.note.read() is None, "a death is counted once"


def test_what_is_new_counts_from_one(seat: Seats) -> None:
    first, second = seat("a"), seat("b")
    first.live()
    first.die(after=7)
    second.live()
    wait_until(lambda: bool(second.told), 30, "the first death")
    second.note.open()
    elsewhere = (Range("t.I", 90, 95),)
    second.note.write(UnderWay(log="id", after=60, records=5, inputs=elsewhere))
    second.register.count()
    second.end()
    first.live()
    wait_until(lambda: first.told[-1].after == 60, 30, "another stretch")
    assert first.told[-1].count == 1


def test_what_was_counted_of_a_log_that_was_made_anew_is_over(seat: Seats) -> None:
    """Topics have been deleted; the count lies in ZooKeeper still."""
    first, second = seat("a"), seat("b")
    first.live()
    second.live()
    first.die(after=60)
    wait_until(lambda: [each.count for each in second.told] == [1], 30, "the first death")
    second.note.open()
    second.note.write(UnderWay(log="anew", after=3, records=5))
    second.register.count()
    second.end()
    first.live()
    wait_until(lambda: first.told[-1].log == "anew", 30, "of the new log")


def test_without_zookeeper_a_supervisor_counts_for_itself(tmp_path: Path) -> None:
    """It tells its next engine, and nothing breaks."""
    alone = Seat("127.0.0.1:1", "/root", tmp_path / "a")
    for _ in range(2):
        client = KazooClient(hosts="127.0.0.1:1")
        alone.register.follow(client, alone)
        alone.die(after=7)
    assert [each.count for each in alone.told] == [1]


def test_an_end_that_says_nothing_is_not_counted(tmp_path: Path) -> None:
    alone = Seat("127.0.0.1:1", "/root", tmp_path / "a")
    alone.note.open()
    alone.note.write(UnderWay(log="id", after=7, records=5))
    alone.register.forget()
    alone.register.count()
    alone.register.follow(KazooClient(hosts="127.0.0.1:1"), alone)
    assert alone.told == []


def test_time_that_kills_is_tried_again_slowly(tmp_path: Path) -> None:
    """And the status says that nothing can be set aside."""
    alone = Seat("127.0.0.1:1", "/root", tmp_path / "a")
    pauses = []
    for _ in range(10):
        alone.note.open()
        alone.note.write(UnderWay(log="id", after=7, records=0, reason="it fails"))
        alone.register.count()
        pauses.append(alone.register.pause_s(7))
    assert pauses[0] == 0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30
    known = alone.register._known
    assert known is not None
    alone.register._known = known.model_copy(update={"count": 1100})
    assert alone.register.pause_s(7) == 30
    assert alone.register.pause_s(8) == 0, "the log has gone on"
    told = alone.register.trouble(7)
    assert "1100 lives in a row have ended behind order record 7" in told
    assert "only time passes (it fails): nothing can be set aside" in told
    assert alone.register.trouble(8) == ""


def test_what_was_lost_with_a_session_is_written_in_the_next_one(seat: Seats) -> None:
    """Whoever takes over may close a session before the death is written in it."""
    first, second, third = seat("a"), seat("b"), seat("c")
    for one in (first, second, third):
        one.live()
    first.die(after=7)
    wait_until(lambda: [each.count for each in second.told] == [1], 30, "the first death")
    assert second.client is not None
    second.client.stop()
    second.die(after=7)
    assert [each.count for each in third.told] == [1], "nobody else heard of the second one"
    second.live()
    wait_until(lambda: [each.count for each in third.told] == [1, 2], 30, "the second death")


def test_a_first_death_that_was_lost_with_its_session_is_written_in_the_next_one(
    seat: Seats,
) -> None:
    first, second = seat("a"), seat("b")
    for one in (first, second):
        one.live()
    assert first.client is not None
    first.client.stop()
    first.die(after=7)
    first.live()
    wait_until(lambda: [each.count for each in second.told] == [1], 30, "the first death")


def test_what_others_count_later_is_not_written_over(seat: Seats) -> None:
    first, second = seat("a"), seat("b")
    first.live()
    first.die(after=7)
    second.live()
    wait_until(lambda: bool(second.told), 30, "the first death")
    second.die(after=7)
    first.live()
    wait_until(lambda: [each.count for each in first.told[-1:]] == [2], 30, "the second death")
    assert first.client is not None
    _, written = first.client.get(f"{first.root}/{ZNODE}")  # behind what the session has written
    assert written.version == 2, "what was known before was written, too"


def test_why_an_engine_was_ended_is_known_of_its_record(tmp_path: Path) -> None:
    """Where it was ended from outside it says nothing itself."""
    alone = Seat("127.0.0.1:1", "/root", tmp_path / "a")
    alone.note.open()
    inputs = (Range("t.I", 4, 5),)
    alone.note.write(UnderWay(log="id", after=7, records=1, inputs=inputs, careful=True))
    counted = alone.register.count("it has no end")
    assert counted is not None
    assert [each.reason for each in counted.blamed] == ["it has no end"]


def test_a_container_that_was_killed_as_a_whole_is_counted_when_it_is_back(seat: Seats) -> None:
    """The kernel ends supervisor and engine together where memory runs out."""
    first, second = seat("a"), seat("b")
    first.live()
    second.live()
    first.die(after=7, whole=True)
    again = seat("a")
    again.live()
    wait_until(lambda: [each.count for each in second.told] == [1], 30, "the first death")
    assert again.told[-1].count == 1
    second.die(after=7, whole=True)
    once_more = seat("b")
    once_more.live()
    wait_until(lambda: [each.count for each in again.told[-1:]] == [2], 30, "the second death")
    assert again.told[-1].by == "b"


def test_nobody_without_the_token_tells_of_deaths(seat: Seats) -> None:
    """Who believed it would set records aside."""
    forger, first, second = seat("x"), seat("a", "open sesame"), seat("b", "open sesame")
    for one in (forger, first, second):
        one.live()
    forger.die(after=9)
    forger.live()
    wait_until(lambda: [each.after for each in forger.told[-1:]] == [9], 30, "the forged one")
    first.die(after=7)
    wait_until(lambda: [each.after for each in second.told] == [7], 30, "the true one")
