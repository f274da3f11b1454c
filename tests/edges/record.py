"""What became of the rows of each kind of adapter: as a table, and kept for the documentation."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, RootModel
from rich.table import Table

from espha.checker.damage import Damage

HEADINGS = ("adapter", "kills", "besides", "rows", "lost", "double", "torn", "out of order")


class Result(BaseModel):
    """What became of the rows of one adapter.

    Attributes:
        adapter: its kind, and `in` or `out`.
        kills: SIGKILLs of its active process.
        rows: how many had to come.
        besides: what else happened.
        commit: of the code.
        first: the first offence in words; empty: there is none.
    """

    adapter: str
    kills: int
    rows: int
    lost: int
    double: int
    torn: int
    disorder: int
    besides: str = ""
    commit: str = ""
    first: str = ""

    @classmethod
    def of(cls, adapter: str, kills: int, rows: int, damage: Damage, besides: str = "") -> "Result":
        """Say what a comparison has found."""
        return cls(
            adapter=adapter, kills=kills, rows=rows, lost=damage.lost, double=damage.double,
            torn=damage.foreign, disorder=damage.disorder, besides=besides, first=damage.first,
        )  # fmt: skip

    @property
    def damaged(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.lost or self.double or self.torn or self.disorder)

    def cells(self) -> list[str]:
        """Return what stands below the headings."""
        figures = (self.rows, self.lost, self.double, self.torn, self.disorder)
        return [self.adapter, str(self.kills), self.besides, *(f"{each:,}" for each in figures)]


class _Kept(RootModel[dict[str, Result]]):
    """The newest result of each kind."""


def table(results: Sequence[Result]) -> Table:
    """Return the results as a table of a terminal."""
    made = Table(*HEADINGS)
    for one in results:
        made.add_row(*one.cells())
    return made


def keep(results: Sequence[Result], folder: Path) -> None:
    """Put results beside those of other kinds into `edges.json`; write `edges.md` anew."""
    path = folder / "edges.json"
    kept = _Kept.model_validate_json(path.read_bytes()).root if path.exists() else {}
    kept |= {one.adapter: one for one in results}
    path.write_text(_Kept(kept).model_dump_json(indent=1) + "\n")
    (folder / "edges.md").write_text(markdown(list(kept.values())))


def markdown(results: Sequence[Result]) -> str:
    """Return the results as a page."""
    rows = [(*HEADINGS, "commit"), ["---"] * (1 + len(HEADINGS))]
    rows += [(*one.cells(), one.commit) for one in results]
    lines = [
        "# Results of the campaign against adapters",
        "",
        "What an independent reader found behind SIGKILLs of adapters under load. "
        "[Run the fault campaign](../how-to/run-fault-campaign.md#adapters) says how it is made.",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"
