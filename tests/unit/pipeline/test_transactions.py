"""What commits batches, without a JVM and brokers: how it waits, and what failures are called."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from espha.kafka.reader import Ends
from espha.kafka.writer import Fenced, TooLarge, WriterFailed
from espha.pipeline import transactions
from espha.pipeline.channel import Outcome, TransactionError, Wanted
from espha.pipeline.transactions import Transactions


class Site:
    """The JVM, and the brokers' answers."""

    def __init__(self) -> None:
        self.open_for = 0
        """So many times the order log ends with somebody's open transaction."""
        self.outcome: Outcome | None = None

    def ask(self, wanted: Wanted, *content: bytes, limit_s: float) -> bytes:
        """Answer, or fail as the JVM does."""
        if self.outcome:
            raise TransactionError("said", self.outcome)
        return b"somebody" if wanted is Wanted.OPEN_ON else bytes(8)

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
