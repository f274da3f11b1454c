"""What a trial's faults have done, from what the reader saw and what the topics hold."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from chaos.reader import Arrival
from chaos.trial import Trial, read_acknowledged
from espha.checker.batches import check_batches
from espha.checker.coverage import check_coverage
from espha.checker.damage import compare
from espha.checker.expect import Read, SumWindow
from espha.checker.judge import Evidence, judge
from espha.checker.order import check_order
from espha.checker.watch import read_all, read_written
from espha.kafka.reader import Offsets, read_range

_AHEAD_MS = 1_500
_SLOW_BATCH_MS = 30_000
"""A batch has its clock when it begins, and is written when it ends."""
_STANDS_S = 1.0
"""Without an output for so long, output stands still."""
DURING_S = 3.0
"""What stops output stops it within this time; a gap behind it has another cause."""


@dataclass
class Strike:
    """One fault, and all that came of it.

    Attributes:
        name: the fault's name.
        moment: `any` or `transaction`.
        target, detail: whom it struck, and what chance chose.
        wall: seconds since 1970 of the stroke.
        struck: the same, of the monotonic clock.
        ended: monotonic moment at which all engines were in sync again.
        seen: number of outputs that the reader had seen at the stroke.
        takeovers, false_failovers: since the fault before.
        gap_ms: the longest time between two outputs, of those of which some part lies in the
            `DURING_S` seconds behind the stroke; None where no output came behind it.
        later_ms: the longest one behind them, until all was well: what it cost to come back.
        successor_ms: from the stroke to the first output that a successor committed; None where
            nobody took over.
        back: monotonic moment at which the first server that was down took connections again.
        back_ms: from then to the next output, where output stood still just then.
        stolen: share of the processor time wanted until output had settled, or until a cause that
            lasts was over, that the host has kept for others.
        damage: counts of lost, double, out of order, wrong, acks missing.
    """

    name: str
    moment: str
    target: str
    detail: str
    wall: float
    struck: float
    seen: int
    ended: float = 0.0
    takeovers: int = 0
    false_failovers: int = 0
    gap_ms: float | None = None
    later_ms: float = 0.0
    successor_ms: float | None = None
    back: float | None = None
    back_ms: float | None = None
    stolen: float = 0.0
    damage: Counter[str] = field(default_factory=Counter)

    def measure(self, arrivals: Sequence[Arrival]) -> None:
        """Find the longest gap at the stroke, and the longest one later."""
        end = self.ended or float("inf")
        during = min(self.struck + DURING_S, end)
        found = gap(arrivals, self.struck, during)
        self.gap_ms = None if found is None else found * 1000
        behind = [each for each in arrivals if each.time > during]
        self.later_ms = (gap(behind, during, end) or 0.0) * 1000
        if self.back is not None and (gap(arrivals, self.back, self.back) or 0.0) > _STANDS_S:
            place = bisect_right(arrivals, self.back, key=lambda each: each.time)
            self.back_ms = (arrivals[place].time - self.back) * 1000

    def find_successor(self, arrivals: Sequence[Arrival], epochs: "_Epochs") -> None:
        """Find the first output of a newer epoch than that of the last one before the stroke."""
        place = bisect_right(arrivals, self.struck, key=lambda each: each.time)
        before = max(filter(None, map(epochs, arrivals[max(0, place - 100) : place])), default=0)
        end = bisect_right(arrivals, self.ended or float("inf"), key=lambda each: each.time)
        for arrival in arrivals[place:end]:
            if (epochs(arrival) or 0) > before:
                self.successor_ms = (arrival.time - self.struck) * 1000
                return


@dataclass
class Verdict:
    """What is wrong with a whole trial; `problems` is empty when nothing is."""

    rows_in: int = 0
    rows_out: int = 0
    acknowledged: int = 0
    damage: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


DAMAGES = ("lost", "double", "out of order", "wrong", "acks missing")


def gap(arrivals: Sequence[Arrival], start: float, end: float) -> float | None:
    """Return the longest time (s) between two arrivals of which some part lies in start..end.

    None where there are no two such arrivals.
    """
    gaps = [b.time - a.time for a, b in pairwise(arrivals) if b.time > start and a.time < end]
    return max(gaps, default=None)


def verdict(trial: Trial, arrivals: Sequence[Arrival], strikes: Sequence[Strike]) -> Verdict:
    """Judge a finished trial; fill in the gaps and the damage of its strikes."""
    order = [each.value for each in read_all(trial.site.kafka.bootstrap, trial.plan.order_log)]
    epochs = _Epochs(order)
    for strike in strikes:
        strike.measure(arrivals)
        strike.find_successor(arrivals, epochs)
    blame = _Blame(arrivals, strikes)
    result = Verdict(rows_out=len(arrivals))
    result.problems += [f"{name} diverged" for name in trial.diverged]
    _topics(trial, arrivals, order, result)
    if trial.model.sums:
        _values(trial, arrivals, order, blame, result)
    if trial.model.expect:
        _texts(trial, arrivals, order, result)
    _coverage(trial, order, result)
    _acknowledgements(trial, order, result)
    _clocks(trial, result)
    return result


def _coverage(trial: Trial, order: Sequence[str], result: Verdict) -> None:
    """Each input record is in a batch: the load has ended, and everything was drained."""
    offsets = {
        topic: [each.offset for each in read_all(trial.site.kafka.bootstrap, topic)]
        for topic in trial.plan.inputs.values()
    }
    coverage = check_coverage(check_order(order).ranges, offsets)
    result.problems += map(str, (*coverage.passed_over, *coverage.waiting))


def _topics(
    trial: Trial, arrivals: Sequence[Arrival], order: Sequence[str], result: Verdict
) -> None:
    """Check that the topics hold what the reader saw, and what the order log stands for."""
    names = [*trial.plan.outputs.values(), trial.plan.dead_letters]
    written = {name: read_written(trial.site.kafka.bootstrap, name) for name in names}
    batches = check_batches(order, written, trial.plan.order_log)
    result.problems += batches.problems()
    result.damage["lost"] += len(batches.incomplete)
    result.damage["out of order"] += len(batches.displaced)
    result.damage["wrong"] += len(batches.altered) + len(batches.orphans)
    for name in trial.plan.outputs.values():
        seen = [each.value for each in arrivals if each.topic == name]
        if seen != [each.value.decode() for each in written[name]]:
            result.problems.append(f"{name}: the reader saw other records than the topic holds")
            result.damage["wrong"] += 1


def _values(
    trial: Trial,
    arrivals: Sequence[Arrival],
    order: Sequence[str],
    blame: "_Blame",
    result: Verdict,
) -> None:
    """Check that every output is what the checker computes from the input topic."""
    bootstrap, plan = trial.site.kafka.bootstrap, trial.plan
    [(source, input_topic)], [(target, _)] = plan.inputs.items(), plan.outputs.items()
    evidence = Evidence(
        input_topic=input_topic,
        inputs=read_all(bootstrap, input_topic),
        outputs=[Read(each.offset, each.value, each.id) for each in arrivals],
        dead=read_all(bootstrap, plan.dead_letters),
        order=list(order),
    )
    sums = [SumWindow.parse(text) for text in trial.model.sums]
    windows = trial.project.windows
    report = judge(evidence, windows[source], windows[target], sums)
    result.rows_in = report.rows_in
    result.problems += report.complaints()
    for damage in report.damages.values():
        for offence, entry in damage.offences:
            blame(offence if offence in DAMAGES else "wrong", str(entry))
    result.damage.update(
        {
            "lost": report.total("lost"),
            "double": report.total("double"),
            "out of order": report.total("disorder"),
            "wrong": report.total("foreign") + report.wrong_sums + report.wrong_values,
        }
    )
    for identity in report.wrong_ids:
        blame("wrong", identity)


def _texts(
    trial: Trial, arrivals: Sequence[Arrival], order: Sequence[str], result: Verdict
) -> None:
    """Every output is what the campaign itself computes for this model."""
    assert trial.model.expect is not None
    bootstrap = trial.site.kafka.bootstrap
    inputs = {
        topic: [each.value for each in read_all(bootstrap, topic)]
        for topic in trial.plan.inputs.values()
    }
    result.rows_in = sum(map(len, inputs.values()))
    result.problems += check_order(order).problems
    expected = trial.model.expect([json.loads(each) for each in order], inputs)
    damage = compare(expected, [each.value for each in arrivals])
    result.problems += [damage.first] if damage.first else []
    result.damage.update(
        {
            "lost": damage.lost,
            "double": damage.double,
            "out of order": damage.disorder,
            "wrong": damage.foreign,
        }
    )


def _acknowledgements(trial: Trial, order: Sequence[str], result: Verdict) -> None:
    """Each commit that an engine was told to have succeeded is in the order log."""
    there = {record["sequence"]: record["digest"] for record in map(json.loads, order)}
    for pod in trial.pods:
        for sequence, digest in read_acknowledged(trial.ack_log(pod.name)):
            result.acknowledged += 1
            if there.get(sequence) != digest:
                result.damage["acks missing"] += 1
                result.problems.append(f"order record {sequence} of {pod.name} is not there")


def _clocks(trial: Trial, result: Verdict) -> None:
    """The log's clock is near the time at which each record was written, whoever wrote it.

    Kafka's client stamps records, with the machine's own clock: the fault `clock` turns only that
    of Python code.
    """
    bootstrap, topic = trial.site.kafka.bootstrap, trial.plan.order_log
    offsets = Offsets(bootstrap)
    for message in read_range(bootstrap, topic, offsets.first(topic), offsets.end(topic)):
        _, written = message.timestamp()
        record = json.loads(message.value())
        away = record["clock"] - written
        if not -_SLOW_BATCH_MS <= away <= _AHEAD_MS:
            result.damage["wrong"] += 1
            result.problems.append(
                f"order record {record['sequence']}: its clock is {away / 1000:+.1f} s from the "
                "time at which it was written"
            )
            return


class _Epochs:
    """Says in which epoch an output was committed, from the input record that its id names."""

    def __init__(self, order: Sequence[str]) -> None:
        self._ends: dict[str, list[int]] = {}
        self._epochs: dict[str, list[int]] = {}
        for record in map(json.loads, order):
            for topic, _, end in record["inputs"]:
                self._ends.setdefault(topic, []).append(end)
                self._epochs.setdefault(topic, []).append(record["epoch"])

    def __call__(self, arrival: Arrival) -> int | None:
        """Return the epoch; None for outputs that no input record stands behind."""
        topic = arrival.id.rpartition(":")[0].rpartition(":")[0]
        place = bisect_right(self._ends.get(topic, []), _offset(arrival.id))
        epochs = self._epochs.get(topic, [])
        return epochs[place] if place < len(epochs) else None


class _Blame:
    """Which fault an offence belongs to: the newest one before the output's turn."""

    def __init__(self, arrivals: Sequence[Arrival], strikes: Sequence[Strike]) -> None:
        self._strikes = strikes
        self._starts = [
            _offset(arrivals[strike.seen - 1].id) if strike.seen else -1 for strike in strikes
        ]

    def __call__(self, damage: str, identity: str) -> None:
        for strike, start in zip(reversed(self._strikes), reversed(self._starts), strict=True):
            if _offset(identity) >= start:
                strike.damage[damage] += 1
                return


def _offset(identity: str) -> int:
    part = identity.rpartition(":")[0].rpartition(":")[2]
    return int(part) if part.isdigit() else -1
