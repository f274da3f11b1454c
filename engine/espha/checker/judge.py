"""From what was read to the report; pure."""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from espha.checker.batches import Batches, Written, check_batches
from espha.checker.coverage import check_coverage, within
from espha.checker.damage import Damage, compare
from espha.checker.expect import Expectation, Read, SumWindow, cells, differs, expect_sums
from espha.checker.gaps import Fault, after, longest
from espha.checker.order import OrderLog, check_order
from espha.checker.report import Report
from espha.model import Window
from espha.protocol.order import Range

_NAMED = 100


@dataclass(slots=True)
class Evidence:
    """Everything that was read: topics in the order of their offsets, files, moments.

    `later` are order records that were committed while the other topics were read.
    `model` is the digest of the model that is meant, where the order log may be of several.
    `offsets` are those of the committed records of every input topic; `partitions` is how many each
    topic has. `written` holds the topics that engines write, with headers; where it is empty, the
    order log's digests are not checked. `drained` says that all input had the time to be processed:
    what was not is lost then, else it waits. `arrivals` are seconds since 1970 at which outputs
    arrived, taken from a steady clock. `trimmed` names topics whose first records were removed.
    """

    input_topic: str
    inputs: list[Read]
    outputs: list[Read]
    dead: list[Read]
    order: list[str]
    later: Sequence[str] = ()
    order_log: str = ""
    offsets: Mapping[str, Sequence[int]] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    drained: bool = True
    written: Mapping[str, Sequence[Written]] = field(default_factory=dict)
    trimmed: Collection[str] = ()
    arrivals: list[float] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    source_file: Path | None = None
    result_file: Path | None = None
    header_lines: int = 1
    model: str = ""


def judge(evidence: Evidence, source: Window, target: Window, sums: Sequence[SumWindow]) -> Report:
    """Compare what came with what must come."""
    order, whole = check_order(evidence.order), evidence
    topic = evidence.input_topic
    skipped = {offset for name, offset in order.skipped if name == topic}
    report = judge_order(evidence)
    led = _led(evidence.model, order, topic)
    begin = order.begins.get(evidence.model, {}).get(topic, 0) if led else 0
    left_out = _Of(topic, order.left_out)
    fed = [row for row in evidence.inputs if row.offset >= begin and not left_out.has(row.offset)]
    wanted = expect_sums(topic, fed, source, sums, skipped)
    if led:
        wanted = Expectation(
            [each for each in wanted.outputs if led.has_id(each.id)],
            [each for each in wanted.dead if led.has_id(each)],
        )
        evidence = replace(
            evidence,
            outputs=[each for each in evidence.outputs if led.has_id(each.id)],
            dead=[each for each in evidence.dead if led.has_id(each.id)],
        )
    report.topic = compare(
        [each.id for each in wanted.outputs], [each.id for each in evidence.outputs]
    )
    report.dead_letters = compare(wanted.dead, [each.id for each in evidence.dead])
    report.order += _balance(order, whole)
    _values(report, wanted, evidence.outputs, target, {each.output for each in sums})
    _files(report, whole, source)
    return report


class _Of:
    """Some ranges of one topic."""

    def __init__(self, topic: str, ranges: Iterable[Range]) -> None:
        self._topic = topic
        self._ranges = sorted((start, end) for name, start, end in ranges if name == topic)

    def has(self, offset: int) -> bool:
        """Tell whether an offset is in one of them."""
        return within(self._ranges, offset)

    def has_id(self, identity: str) -> bool:
        """Tell whether the record that a message id names is in one; so is one of another topic."""
        topic, _, offset = identity.rpartition(":")[0].rpartition(":")
        return topic != self._topic or not offset.isdigit() or self.has(int(offset))


def _led(model: str, order: OrderLog, topic: str) -> _Of | None:
    """Return what the model has processed of a topic, and made outputs of.

    None where no other model has processed anything.
    """
    if model not in order.led or len(order.led) == 1:
        return None
    return _Of(topic, order.led[model])


def judge_order(evidence: Evidence) -> Report:
    """Compare the order log with the topics, and leave the outputs' values to its digests."""
    trimmed = evidence.order_log in evidence.trimmed
    order = check_order(evidence.order, trimmed=trimmed)
    known = [*order.ranges, *order.left_out]
    coverage = check_coverage(known, evidence.offsets, trimmed=trimmed)
    unprocessed = coverage.passed_over + (coverage.waiting if evidence.drained else [])
    return Report(
        rows_in=len(evidence.inputs),
        rows_out=len(evidence.outputs),
        dead=len(evidence.dead),
        topic=None,
        dead_letters=None,
        order=order.problems,
        batches=_batches(evidence),
        order_records=order.records,
        first_record=order.first,
        epoch=order.epoch,
        models=order.models,
        left_out=_count(order.left_out, evidence.offsets),
        unprocessed=sum(each.rows for each in unprocessed),
        waiting=sum(each.rows for each in coverage.waiting) if not evidence.drained else 0,
        inputs=[*map(str, unprocessed), *_partitions(evidence.partitions)],
        longest_gap_ms=_ms(longest(evidence.arrivals)),
        gaps_ms=[(f.name, _ms(gap)) for f, gap in after(evidence.arrivals, evidence.faults)],
    )


def _count(ranges: Sequence[Range], offsets: Mapping[str, Sequence[int]]) -> int:
    """Return how many records, of all topics, are in ranges."""
    return sum(sum(map(_Of(topic, ranges).has, of_topic)) for topic, of_topic in offsets.items())


def _batches(evidence: Evidence) -> Batches:
    if not evidence.written:
        return Batches()
    return check_batches(
        evidence.order,
        evidence.written,
        evidence.order_log,
        evidence.trimmed,
        evidence.later,
    )


def _partitions(counts: Mapping[str, int]) -> list[str]:
    """Return a sentence for each topic of which others than the only partition would be missed."""
    return [
        f"topic {topic} has {count} partitions; only the first one is read"
        for topic, count in counts.items()
        if count != 1
    ]


def _balance(order: OrderLog, evidence: Evidence) -> list[str]:
    written = len(evidence.outputs) + len(evidence.dead)
    if evidence.written or order.outputs == written:  # with `written` each batch is counted
        return []
    return [f"its batches say {order.outputs} outputs, the topics hold {written}"]


def _values(
    report: Report, wanted: Expectation, outputs: list[Read], target: Window, sums: set[str]
) -> None:
    by_id = {each.id: each for each in wanted.outputs}
    for output in outputs:
        expected = by_id.get(output.id)
        wrong = differs(expected, output.value, target.fields) if expected else []
        if not wrong:
            continue
        if set(wrong) <= sums:
            report.wrong_sums += 1
        else:
            report.wrong_values += 1
        if len(report.wrong_ids) < _NAMED:
            report.wrong_ids.append(output.id)
        report.first_wrong = report.first_wrong or f"{output.id} {output.value!r}: {wrong}"


def _files(report: Report, evidence: Evidence, source: Window) -> None:
    skipped = 2 + bool(getattr(source, "autogen_key", False))
    if evidence.source_file is not None:
        rows = file_rows(evidence.source_file, evidence.header_lines)
        published = [tuple(cells(each.value)[skipped:]) for each in evidence.inputs]
        report.rows_in_file, report.source = len(rows), compare(rows, published)
    if evidence.result_file is not None:
        lines, damage = compare_result(evidence.result_file, evidence.outputs)
        report.rows_in_result, report.result = lines, damage


def file_rows(path: Path, header_lines: int) -> list[tuple[str, ...]]:
    """Return the rows of a CSV file behind its header; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        for _ in range(header_lines):
            next(file, "")
        return [tuple(row) for row in csv.reader(file) if row]


def compare_result(path: Path, outputs: Sequence[Read]) -> tuple[int, Damage]:
    """Compare the result file line by line with the topic; the first line may be a header."""
    text = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
    lines = text.split("\n")
    whole, rest = lines[:-1], lines[-1:]
    lines = whole + [line for line in rest if line]  # a torn last line is no row of the topic
    values = [each.value for each in outputs]
    if lines and (not values or lines[0] != values[0]) and _is_header(lines[0]):
        lines = lines[1:]
    return len(lines), compare(values, lines)


def _is_header(line: str) -> bool:
    return all(cell.strip().isidentifier() for cell in cells(line.replace("*", "")))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)
