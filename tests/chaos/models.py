"""The models that the campaign runs, and the rows that it feeds them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.expect import expect_join, expect_two
from chaos.here import ROOT


@dataclass(frozen=True)
class Model:
    """A model under load.

    Attributes:
        path: its XML.
        sources: source windows; rows go to them in turn.
        row: the text of row number n (from 0), made at a wall clock in ms.
        stamp: from an output's text back to that wall clock.
        sums: what `espha verify --sum-window` is told, for models that it can recompute.
        expect: from order log and inputs to the texts that must come out, for other models.
    """

    path: Path
    sources: tuple[str, ...]
    row: Callable[[int, int], str]
    stamp: Callable[[str], int]
    sums: tuple[str, ...] = ()
    expect: Callable[..., list[str]] | None = None


def _order_or_price(number: int, ms: int) -> str:
    """Return an order (even numbers) that wants one of the last 300 prices, or a price."""
    value = number % 97 if number % 2 else number - 1 - 2 * (number * 7919 % 300)
    return f"I,N,{number},{value},{ms}"


MODELS = {
    "ha": Model(
        ROOT / "manifests" / "models" / "ha-project.xml",
        ("cq/memory",),
        lambda number, ms: f"I,N,,{number},{4000 + number % 7},{9000 - number % 5},{ms}",
        lambda text: int(text.split(",")[6]),
        ("Record_Counter:20:sum20",),
    ),
    "two": Model(
        Path(__file__).parent / "models" / "two-sources.xml",
        ("cq/left", "cq/right"),
        lambda number, ms: f"I,N,{number},{number % 97},{ms}",
        lambda text: int(text.split(",")[4]),
        expect=expect_two,
    ),
    "join": Model(
        Path(__file__).parent / "models" / "join.xml",
        ("cq/orders", "cq/prices"),
        _order_or_price,
        lambda text: int(text.split(",")[4]),
        expect=expect_join,
    ),
}
