"""What commits batches, without a JVM and brokers: how it waits, and what failures are called."""

import contextlib
import itertools
import struct
from collections.abc import Callable
from typing import Any, cast

import pytest

from espha.kafka.reader import Ends
from espha.kafka.writer import Fenced, TooLarge, WriterFailed
from espha.pipeline import transactions
from espha.pipeline.channel import ChannelError, Outcome, TransactionError, Wanted
from espha.pipeline.job import Result
from espha.pipeline.transactions import Transactions


class Site:
    """The JVM, and the brokers' answers."""

    def __init__(self) -> None:
        self.open_for = 0
        """So many times the order log ends with somebody's open transaction."""
        self.outcome: Outcome | None = None
        self.offsets = itertools.count()
        """Of order records."""
        self.places: list[tuple[int, int]] = []
        """From where to where an order record may come."""
        self.silent: set[Wanted] = set()
        """What is not answered."""
        self.busy = False
        self.asked: list[Wanted] = []
        self.log_end = 0
        """Where the order log ends."""

    def ask(self, wanted: Wanted, *content: bytes, limit_s: float) -> bytes:
        """Answer, or fail as the JVM does."""
        self.asked.append(wanted)
        if self.busy:
            raise ChannelError("an answer has not been taken to its end")
        if wanted in self.silent:
            self.busy = True
            raise ChannelError("the JVM has not answered for 35 s")
        if self.outcome:
            raise TransactionError("said", self.outcome)
        if wanted is Wanted.COMMIT:
            self.places.append(struct.unpack(">qq", content[1]))
            return struct.pack(">q", next(self.offsets))
        return b"somebody" if wanted is Wanted.OPEN_ON else bytes(8)

    def close(self) -> None:
        """Be connected to anew, by whoever wants to."""
        self.busy = False

    def keep_warm(self, topic: str) -> None:
        """Be warm always."""

    def end(self, topic: str) -> int:
        """Say where it ends, for whoever does not ask about open transactions."""
        return self.log_end

    def ends(self, topic: str) -> Ends:
        """Say where it ends."""
        self.open_for -= 1
        return Ends(4, 9 if self.open_for >= 0 else 4)


Make = Callable[[Site], Transactions]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make transactions of a site."""

    def of(site: Site) -> Transactions:
        monkeypatch.setattr(transactions, "Channel", lambda session: site)
        monkeypatch.setattr(transactions, "Offsets", lambda bootstrap: site)
        monkeypatch.setattr(transactions, "_hush", lambda session: None)
        return Transactions(cast("Any", None), "b", "t.M")

    return of


def test_a_fence_says_that_it_gets_on_while_another_id_has_the_log_open(made: Make) -> None:
    """That may last as long as brokers keep a transaction open; nobody is to end it meanwhile."""
    site = Site()
    site.open_for = 3
    mine, moves = made(site), []
    mine.moved = lambda: moves.append(site.open_for)
    mine.fence()
    assert moves == [2, 1, 0]


def test_in_the_end_it_says_whose_transaction_it_is(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_OPEN_LIMIT_S", 0.0)
    site = Site()
    site.open_for = 9
    with pytest.raises(WriterFailed, match="open from offset 4 on, of somebody; "):
        made(site).fence()


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome.FAILED, WriterFailed),
        (Outcome.FENCED, Fenced),
        (Outcome.TOO_LARGE, TooLarge),
    ],
)
def test_what_the_jvm_says_of_a_failure_has_a_name(
    made: Make, outcome: Outcome, kind: type[WriterFailed]
) -> None:
    """Only of some of them records are to blame."""
    site = Site()
    mine = made(site)
    site.outcome = outcome
    with pytest.raises(WriterFailed) as raised:
        mine.fence()
    assert type(raised.value) is kind


def test_the_jvm_is_told_where_an_order_record_may_come(made: Make) -> None:
    """The first one behind what was read back, each other one somewhere behind the one before."""
    site = Site()
    mine = made(site)
    site.offsets = itertools.chain([7, 11])  # type: ignore[assignment]
    mine.go_on(7)
    for _ in range(3):
        with contextlib.suppress(StopIteration):
            mine.commit(Result([], 0, None), b"{}")
    assert site.places == [(7, 7), (8, 2**63 - 1), (12, 2**63 - 1)]
    site.log_end, mine._version, mine._renew = mine.committed, 0, True
    mine.begin()
    with contextlib.suppress(StopIteration):
        mine.commit(Result([], 0, None), b"{}")
    assert site.places[-1] == (13, 13), "nor behind what was not seen when it took a new epoch"


def test_a_rehearsal_without_an_answer_keeps_no_engine_from_leading(made: Make) -> None:
    """Kafka was away when it started; else it would end at its first fence."""
    site = Site()
    site.silent = {Wanted.REHEARSE}
    mine = made(site)
    mine.warm_up(["t.O"], "t.warm-up", "engine-0")
    mine.fence()


def test_a_fence_does_not_end_because_nobody_says_whose_transaction_it_is(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take as long in the next life, though the transaction may have ended by then."""
    monkeypatch.setattr(transactions, "_WHO_S", 0.0)
    site = Site()
    site.open_for = 3
    mine = made(site)
    monkeypatch.setattr(site, "silent", {Wanted.OPEN_ON})
    mine.fence()
    assert site.asked.count(Wanted.OPEN_ON) == 1


def test_who_was_replaced_does_not_shut_out_its_successor(made: Make) -> None:
    """A commit took long, as that of a frozen engine does, and another one leads by now."""
    site = Site()
    mine = made(site)
    mine._version, mine._renew = 0, True
    site.log_end = mine.committed + 2
    with pytest.raises(Fenced, match="another engine has committed meanwhile"):
        mine.begin()
    assert not {Wanted.CLOSE, Wanted.FENCE} & set(site.asked)


def test_who_still_leads_behind_a_long_commit_goes_on_in_a_new_epoch(made: Make) -> None:
    site = Site()
    mine = made(site)
    mine._version, mine._renew = 0, True
    site.log_end = mine.committed
    mine.begin()
    assert site.asked[-1] is Wanted.FENCE
