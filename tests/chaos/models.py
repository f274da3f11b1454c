"""The models that the campaign runs, and the rows that it feeds them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.expect import expect_join, expect_large, expect_plain, expect_two
from chaos.here import ROOT

LARGE_KEYS = 1_000_000


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
        snapshot_s: seconds between two snapshots; short ones, for campaigns that restart much.
        own_topics: it names its topics itself, so that it may be renamed; `TOPICS` stands there for
            the first part of their names.
    """

    path: Path
    sources: tuple[str, ...]
    row: Callable[[int, int], str]
    stamp: Callable[[str], int]
    sums: tuple[str, ...] = ()
    expect: Callable[..., list[str]] | None = None
    snapshot_s: int = 10
    own_topics: bool = False

    def write(self, folder: Path, topics: str, name: str = "") -> Path:
        """Write the model for a trial whose topics begin with `topics`; return the file.

        Args:
            folder: where to.
            topics: first part of the names of all topics.
            name: what the project is called there; empty: as always.
        """
        text = self.path.read_text(encoding="utf-8").replace("TOPICS", topics)
        if name:
            text = re.sub(r'(<project name=")[^"]*', rf"\g<1>{name}", text, count=1)
        path = folder / f"{name or 'model'}.xml"
        path.write_text(text, encoding="utf-8")
        return path


def _row_of_a_million(number: int, ms: int) -> str:
    """Return a row for one of a million keys, which come in an order that means nothing."""
    key = number * 7919 % LARGE_KEYS
    return f"P,N,{key},{number},name of the key {key},{ms}"


def _order_or_price(number: int, ms: int) -> str:
    """Return an order (even numbers) that wants one of the last 300 prices, or a price."""
    value = number % 97 if number % 2 else number - 1 - 2 * (number * 7919 % 300)
    return f"I,N,{number},{value},{ms}"


def _long_row(number: int, ms: int) -> str:
    """Return a row of 10 kB; each hundredth has 500 kB."""
    length = 500_000 if number % 100 == 99 else 10_000
    return f"I,N,{number},{number % 97},{ms},{length * chr(ord('a') + number % 26)}"


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
    "plain": Model(
        Path(__file__).parent / "models" / "plain.xml",
        ("cq/rows",),
        lambda number, ms: f"I,N,{number},{number % 97},{ms}",
        lambda text: int(text.split(",")[4]),
        expect=expect_plain,
        own_topics=True,
    ),
    "wide": Model(
        Path(__file__).parent / "models" / "wide.xml",
        ("cq/rows",),
        _long_row,
        lambda text: int(text.split(",")[4]),
        expect=expect_plain,
    ),
    "large": Model(
        Path(__file__).parent / "models" / "large.xml",
        ("cq/rows",),
        _row_of_a_million,
        lambda text: int(text.split(",")[5]),
        expect=expect_large,
        snapshot_s=60,
    ),
    "join": Model(
        Path(__file__).parent / "models" / "join.xml",
        ("cq/orders", "cq/prices"),
        _order_or_price,
        lambda text: int(text.split(",")[4]),
        expect=expect_join,
    ),
}
