"""What the corpus says of a project's results: one file of `expected/` for each project."""

import csv
import io
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FOLDER = Path(__file__).parent / "expected"

Match = Literal["all", "first", "last", "run", "some", "set", "state"]
"""Which events of a window are written down: all; the first or last ones; a run of neighbours;
some, in this order; all, in whatever order; or the rows that are left at the end."""


class _Typed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Keeps(_Typed):
    """A rule instead of rows, where the input is random: the rows of another window."""

    window: str
    column: str
    above: float


class ExpectedWindow(_Typed):
    """What leaves one window.

    Attributes:
        name: the window.
        source: the file of the corpus that says it, and the place in it.
        columns: names of the columns, with commas; `opcode` is one of them.
        events: rows of CSV. `*` stands for any text, an ending `…` for the rest of one.
        newest_first: the rows are written as the source shows them, the newest above.
        match: which events these are.
        keys: for `state`, the columns that tell rows apart.
        total: how many events leave the window in all.
        digits: digits behind the point that the source shows.
        keeps: the rule that the window's events follow.
        difference: why the result differs from what is documented, when it does.
    """

    name: str
    source: str
    columns: str = ""
    events: str = ""
    newest_first: bool = False
    match: Match = "all"
    keys: tuple[str, ...] = ()
    total: int | None = None
    digits: int = 6
    keeps: Keeps | None = None
    difference: str = ""

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns."""
        return [name.strip() for name in self.columns.split(",")] if self.columns else []

    @cached_property
    def rows(self) -> list[list[str]]:
        """The events, the oldest first."""
        rows = [row for row in csv.reader(io.StringIO(self.events.strip())) if row]
        stripped = [[cell.strip() for cell in row] for row in rows]
        return stripped[::-1] if self.newest_first else stripped


class Expected(_Typed):
    """One project: how it is run, and what comes out.

    Attributes:
        project: its name in the corpus.
        inputs: as for `espha run --input`.
        files: names in connectors, and the files of the corpus that are meant.
        settings: values of tokens.
        properties: values for properties of connectors, in place of the project's.
        seconds: how long it runs at most, by its own clock.
        idle: go on until no event has flowed for so many seconds.
        note: what a reader of the page is told.
        window: the windows.
    """

    project: str
    inputs: tuple[str, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    properties: dict[str, str] = Field(default_factory=dict)
    seconds: float = 3600
    idle: float | None = None
    note: str = ""
    window: tuple[ExpectedWindow, ...] = ()


def read_expected(folder: Path = FOLDER) -> dict[str, Expected]:
    """Return what is expected of each project, by its name."""
    found = {}
    for path in sorted(folder.glob("*.toml")):
        expected = Expected.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        assert expected.project not in found, f"{path.name}: {expected.project} is there twice"
        found[expected.project] = expected
    return found
