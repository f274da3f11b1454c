"""Check the order log: sequences, ranges, epochs and clocks that follow each other."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from espha.protocol.order import Range


@dataclass(slots=True)
class OrderLog:
    """What the order log says.

    Attributes:
        records: number of order records.
        epoch: the newest epoch; `epoch - 1` take-overs happened.
        outputs: number of records that all batches say they wrote.
        ranges: of input records, in the order in which they were processed.
        skipped: topic and offset of records that engines have set aside.
        left_out: of input records, which people have had the engines leave out (`espha skip`).
        models: how often the model was changed.
        first: sequence number of the first record; what was before is not on the topic any more.
        led: for each model, the ranges that it has processed for the outputs.
        begins: for each model that began in the shadow, at which offset of each topic.
        problems: sentences, empty when all is well.
    """

    records: int = 0
    epoch: int = 0
    outputs: int = 0
    ranges: list[Range] = field(default_factory=list)
    skipped: set[tuple[str, int]] = field(default_factory=set)
    left_out: list[Range] = field(default_factory=list)
    models: int = 0
    first: int = 1
    led: dict[str, list[Range]] = field(default_factory=dict)
    begins: dict[str, dict[str, int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def check_order(values: Iterable[bytes | str], *, trimmed: bool = False) -> OrderLog:
    """Read order records (JSON) in the order of the topic, from its beginning.

    Args:
        values: the records.
        trimmed: the first ones have been removed: any record may be the first one.
    """
    log = OrderLog()
    before: dict[str, Any] = {"sequence": 0, "epoch": 0, "clock": 0}
    taken: dict[str, int] = {}
    every = list(values)
    records = order_records(every)
    if len(records) < len(every):
        strays = len(every) - len(records)
        log.problems.append(f"something else has written to this topic, so often: {strays}")
    for record in records:
        if trimmed and not log.records:
            before = {**record, "sequence": record["sequence"] - 1, "switch": ""}
        if not log.records:
            log.first = record["sequence"]
        log.problems += _steps(before, record)
        for topic, offset in record.get("resumes", ()):
            if offset > taken.get(topic, 0):
                log.left_out.append(Range(topic, taken.get(topic, 0), offset))
                taken[topic] = offset
        for topic, start, end in record["inputs"]:
            log.problems += _range(taken, record["sequence"], topic, start, end)
            taken[topic] = end
            log.ranges.append(Range(topic, start, end))
            log.led.setdefault(record["model"], []).append(Range(topic, start, end))
        for topic, offset, _ in record.get("skipped", ()):
            log.problems += _place(record, topic, offset)
            log.skipped.add((topic, offset))
        log.records += 1
        log.outputs += record["outputs"]
        log.epoch = max(log.epoch, record["epoch"])
        log.models += record["model"] != before.get("model", record["model"])
        shadow = record.get("shadow") or {}
        if shadow.get("since") == record["sequence"]:
            log.begins[shadow["model"]] = dict(shadow.get("cursors", ()))
        before = record
    return log


def order_records(values: Iterable[bytes | str]) -> list[dict[str, Any]]:
    """Return the order records among the records of the topic; engines pass over all others."""
    found = []
    for value in values:
        try:
            record = json.loads(value)
        except ValueError:
            continue
        if isinstance(record, dict) and "sequence" in record:
            found.append(record)
    return found


def _place(record: dict[str, Any], topic: str, offset: int) -> list[str]:
    if any(name == topic and start <= offset < end for name, start, end in record["inputs"]):
        return []
    return [f"sequence {record['sequence']}: {topic} {offset} is set aside, and not in the batch"]


def _steps(before: dict[str, Any], record: dict[str, Any]) -> list[str]:
    number = record["sequence"]
    problems = []
    if number != before["sequence"] + 1:
        problems.append(f"sequence {number} follows {before['sequence']}")
    if record["epoch"] < before["epoch"]:
        problems.append(f"sequence {number}: epoch {record['epoch']} after {before['epoch']}")
    elif record["epoch"] > before["epoch"] + 1:
        problems.append(
            f"sequence {number}: epoch goes from {before['epoch']} to {record['epoch']}"
        )
    if record["epoch"] == before["epoch"] and record["engine"] != before.get("engine"):
        problems.append(f"sequence {number}: two engines in epoch {record['epoch']}")
    if record["clock"] < before["clock"]:
        problems.append(f"sequence {number}: the clock goes back")
    return problems + _model(before, record)


def _model(before: dict[str, Any], record: dict[str, Any]) -> list[str]:
    """Check that the model changes where the record before says so, to one that has begun."""
    number, model = record["sequence"], record["model"]
    announced = before.get("switch") or before.get("model", model)
    problems = []
    if model != announced:
        named = f"{model[:12]}, and sequence {before['sequence']} announces {announced[:12]}"
        problems.append(f"sequence {number} is of model {named}")
    switch, shadow = record.get("switch"), record.get("shadow") or {}
    if switch and switch != shadow.get("model"):
        problems.append(f"sequence {number} goes over to model {switch[:12]}, which no engine runs")
    known = before.get("shadow") or {}
    if shadow and shadow.get("since") != known.get("since") and shadow["since"] > number:
        problems.append(f"sequence {number}: a shadow begins behind it, at {shadow['since']}")
    return problems


def _range(taken: dict[str, int], number: int, topic: str, start: int, end: int) -> list[str]:
    expected = taken.get(topic, start)
    if start == expected and end > start:
        return []
    return [f"sequence {number}: {topic} {start}-{end} follows an end at {expected}"]
