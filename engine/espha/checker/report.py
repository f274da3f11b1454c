"""The checker's findings, for people and for programs."""

from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from espha.checker.batches import Batches
from espha.checker.damage import Damage


@dataclass(slots=True)
class Report:
    """Everything that was found; counts of rows, damage, gaps in milliseconds.

    Attributes:
        rows_in: records on the input topic.
        rows_out: records on the output topic.
        dead: records on the dead-letter topic.
        topic: damage between input and output topic; None when values were not checked.
        dead_letters: damage on the dead-letter topic; None likewise.
        wrong_sums: outputs of which only sums are not what they must be.
        wrong_values: outputs with anything else that is wrong.
        first_wrong: the first wrong output, in words.
        wrong_ids: message ids of the first hundred wrong outputs.
        order: problems of the order log.
        batches: what is wrong between order records and outputs.
        order_records: number of order records.
        first_record: sequence number of the first one; those before have been removed.
        epoch: the newest epoch.
        models: how often the model was changed.
        left_out: input records on the topics that people have had the engines leave out.
        unprocessed: input records that are in no batch.
        waiting: input records whose turn may still come.
        inputs: what is wrong with input topics, in words.
        longest_gap_ms: longest time without an output while the checker was following.
        gaps_ms: `[name, gap]` for each fault; a gap of None: nothing came after it.
        rows_in_file: rows of the source file, `source` the damage between it and the input topic.
        rows_in_result: rows of the result file, `result` the damage between topic and it.
    """

    rows_in: int
    rows_out: int
    dead: int
    topic: Damage | None
    dead_letters: Damage | None
    wrong_sums: int = 0
    wrong_values: int = 0
    first_wrong: str = ""
    wrong_ids: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    batches: Batches = field(default_factory=Batches)
    order_records: int = 0
    first_record: int = 1
    epoch: int = 0
    models: int = 0
    left_out: int = 0
    unprocessed: int = 0
    waiting: int = 0
    inputs: list[str] = field(default_factory=list)
    longest_gap_ms: float | None = None
    gaps_ms: list[tuple[str, float | None]] = field(default_factory=list)
    rows_in_file: int | None = None
    source: Damage | None = None
    rows_in_result: int | None = None
    result: Damage | None = None

    @property
    def damages(self) -> dict[str, Damage]:
        """All comparisons that were made, by what they compare."""
        all_of_them = {
            "source file → input topic": self.source,
            "input topic → output topic": self.topic,
            "input topic → dead letters": self.dead_letters,
            "output topic → result file": self.result,
        }
        return {name: damage for name, damage in all_of_them.items() if damage is not None}

    @property
    def ok(self) -> bool:
        """Whether nothing at all is wrong."""
        values = self.wrong_sums or self.wrong_values
        wrong = values or self.inputs or self.order or self.batches.problems()
        return not wrong and all(damage.none for damage in self.damages.values())

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON can hold it, with the totals and `complaints`."""
        totals = {kind: self.total(kind) for kind in ("lost", "double", "disorder", "foreign")}
        return {"ok": self.ok, **totals, **asdict(self), "complaints": self.complaints()}

    def total(self, kind: str) -> int:
        """Return the sum of one kind of damage (`lost`, `double` …) over all comparisons."""
        return sum(getattr(damage, kind) for damage in self.damages.values())

    def complaints(self) -> list[str]:
        """Return a sentence for each thing that is wrong."""
        found = [f"{name}: {damage.first}" for name, damage in self.damages.items() if damage.first]
        found += [f"wrong output: {self.first_wrong}"] if self.first_wrong else []
        found += [f"input: {problem}" for problem in self.inputs]
        found += self.batches.problems()
        return found + [f"order log: {problem}" for problem in self.order[:10]]


def table(report: Report) -> Table:
    """Return the report as a table; what is wrong is red."""
    shown = Table(title="What a reader sees", show_header=False)
    shown.add_column()
    shown.add_column(justify="right")
    for name, count in _rows(report):
        shown.add_row(name, count)
    shown.add_section()
    for name, wrong in _wrongs(report):
        shown.add_row(name, f"[{'red' if wrong else 'green'}]{wrong}[/]")
    shown.add_section()
    shown.add_row("longest gap, ms", _ms(report.longest_gap_ms))
    for name, gap in report.gaps_ms:
        shown.add_row(f"longest gap, ms: {name}", _ms(gap))
    return shown


def _rows(report: Report) -> list[tuple[str, str]]:
    counts = [
        ("rows in the source file", report.rows_in_file),
        ("rows in (input topic)", report.rows_in),
        ("rows out (output topic)", report.rows_out),
        ("rows in the result file", report.rows_in_result),
        ("dead letters", report.dead),
        ("order records", _counted(report)),
        ("take-overs", max(0, report.epoch - 1)),
        ("changes of the model", report.models or None),
        ("rows in, left out (espha skip)", report.left_out or None),
        ("rows in that wait", report.waiting or None),
        ("batches not judged (outputs removed)", report.batches.unjudged or None),
    ]
    return [(name, str(count)) for name, count in counts if count is not None]


def _wrongs(report: Report) -> list[tuple[str, int]]:
    return [
        ("lost", report.total("lost")),
        ("double", report.total("double")),
        ("out of order", report.total("disorder")),
        ("not expected", report.total("foreign")),
        ("not processed", report.unprocessed),
        ("wrong sums", report.wrong_sums),
        ("other wrong values", report.wrong_values),
        ("outputs without order record", len(report.batches.orphans)),
        ("batches incomplete or overfull", len(report.batches.incomplete)),
        ("batches altered", len(report.batches.altered)),
        ("outputs behind those of later batches", len(report.batches.displaced)),
        ("order log problems", len(report.order)),
    ]


def _ms(gap: float | None) -> str:
    return "-" if gap is None else f"{gap:.0f}"


def _counted(report: Report) -> str:
    begins = f", from {report.first_record} on" if report.first_record > 1 else ""
    return f"{report.order_records}{begins}"
