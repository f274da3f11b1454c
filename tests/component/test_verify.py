"""`espha verify` on real topics: what an engine leaves, and each way of damaging it by hand."""

import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from typer.testing import CliRunner

from espha.checker.batches import Written, digest
from espha.checker.report import Report
from espha.checker.verify import VerifyOptions, verify
from espha.checker.watch import read_all
from espha.cli import app
from espha.connectors.topics import TopicPlan, topic_plan
from espha.kafka.writer import FencedWriter, Record
from espha.reader import read_project
from support.deployment import SAMPLE_MODEL
from support.servers import Kafka, wait_until

pytestmark = pytest.mark.component

ROWS, BATCH = 40, 8
SUM = "Record_Counter:20:sum20"


@dataclass
class Log:
    """What stands on the topics of the sample model, ready to be damaged and then written."""

    plan: TopicPlan
    inputs: list[str] = field(default_factory=list)
    outputs: list[Written] = field(default_factory=list)
    order: list[dict[str, Any]] = field(default_factory=list)

    def write(self, kafka: Kafka) -> None:
        """Write everything."""
        kafka.make_topics(*self.plan.all())
        writer = FencedWriter(kafka.bootstrap, self.plan.prefix)
        writer.fence()
        (source,) = self.plan.inputs.values()
        writer.commit(
            [
                *(Record(source, text.encode()) for text in self.inputs),
                *(Record(each.topic, each.value, each.headers) for each in self.outputs),
                *(Record(self.plan.order_log, json.dumps(each).encode()) for each in self.order),
            ]
        )
        wait_until(lambda: self._shows(kafka), 30, "the commit shows on all topics")

    def _shows(self, kafka: Kafka) -> bool:
        """A commit returns a little before the records of all its topics can be read."""
        (source,) = self.plan.inputs.values()
        counts = {source: len(self.inputs), self.plan.order_log: len(self.order)}
        counts |= Counter(each.topic for each in self.outputs)
        return all(
            len(read_all(kafka.bootstrap, topic)) == count for topic, count in counts.items()
        )


def output(plan: TopicPlan, number: int) -> Written:
    """Row `number` as the sample model must write it: keys from 0, the last 20 counters."""
    (source,), (target,) = plan.inputs.values(), plan.outputs.values()
    total = sum(range(max(0, number - 19), number + 1))
    value = f"I,N, {number},{number},10,20,30,{total:.6f}"
    return Written(target, value.encode(), (("espha-id", f"{source}:{number}:0".encode()),))


@pytest.fixture
def log() -> Iterator[Log]:
    """What a faultless engine leaves."""
    plan = topic_plan(read_project(SAMPLE_MODEL.read_text()), f"v{uuid.uuid4().hex[:8]}")
    (source,) = plan.inputs.values()
    made = Log(plan, [f"I,N,,{number},10,20,30" for number in range(ROWS)])
    for sequence, start in enumerate(range(-BATCH, ROWS, BATCH), start=1):
        outputs = [output(plan, number) for number in range(max(0, start), start + BATCH)]
        made.outputs += outputs
        made.order.append(
            {
                "sequence": sequence,
                "inputs": [[source, start, start + BATCH]] if outputs else [],
                "clock": 1000 + sequence,
                "outputs": len(outputs),
                "digest": digest(outputs),
                "model": "m",
                "engine": "engine-0",
                "epoch": 1,
                "runtime": "",
            }
        )
    yield made


def verified(kafka: Kafka, log: Log, **more: Any) -> Report:
    log.write(kafka)
    options = VerifyOptions(
        kafka.bootstrap, SAMPLE_MODEL, prefix=log.plan.prefix, sums=(SUM,), **more
    )
    return verify(options)


def found(report: Report) -> dict[str, int]:
    """What is wrong, by name and count."""
    counts = {kind: report.total(kind) for kind in ("lost", "double", "disorder", "foreign")}
    counts |= {"wrong sums": report.wrong_sums, "wrong values": report.wrong_values}
    counts |= {"orphans": len(report.batches.orphans), "order": len(report.order)}
    counts |= {"incomplete": len(report.batches.incomplete)}
    counts |= {"altered": len(report.batches.altered)}
    return {name: count for name, count in counts.items() if count}


def test_what_an_engine_leaves_is_faultless(kafka: Kafka, log: Log) -> None:
    report = verified(kafka, log)
    assert found(report) == {}
    assert report.ok
    assert (report.rows_in, report.rows_out, report.order_records) == (ROWS, ROWS, 6)


def alter(log: Log, old: bytes, new: bytes) -> None:
    assert old in log.outputs[30].value
    log.outputs[30] = log.outputs[30]._replace(value=log.outputs[30].value.replace(old, new))


def swap(log: Log) -> None:
    log.outputs[9], log.outputs[10] = log.outputs[10], log.outputs[9]


def swap_batches(log: Log) -> None:
    log.outputs[8:24] = log.outputs[16:24] + log.outputs[8:16]


def unnamed(log: Log) -> None:
    """An output that some other program wrote to the topic."""
    log.outputs.append(output(log.plan, ROWS)._replace(headers=()))


def ahead(log: Log) -> None:
    """The next batch's outputs, committed without its order record."""
    log.inputs.append(f"I,N,,{ROWS},10,20,30")
    log.outputs.append(output(log.plan, ROWS))


def hole(log: Log) -> None:
    """One order record is gone; all that follows is whole."""
    del log.order[3]


def repeat(log: Log) -> None:
    log.order.insert(3, log.order[3])


DAMAGES: list[tuple[str, Callable[[Log], object], dict[str, int]]] = [
    ("an output is removed", lambda log: log.outputs.pop(9), {"lost": 1, "incomplete": 1}),
    (
        "an output is doubled",
        lambda log: log.outputs.insert(10, log.outputs[9]),
        {"double": 1, "incomplete": 1},
    ),
    ("two outputs are swapped", swap, {"disorder": 1, "altered": 1}),
    ("two batches are swapped", swap_batches, {"disorder": 8}),
    (
        "a sum is altered",
        lambda log: alter(log, b",410.", b",411."),
        {"wrong sums": 1, "altered": 1},
    ),
    (
        "a value is altered",
        lambda log: alter(log, b",10,", b",11,"),
        {"wrong values": 1, "altered": 1},
    ),
    ("an output has no id", unnamed, {"foreign": 1, "orphans": 1}),
    ("an output has no order record", ahead, {"orphans": 1}),
    ("an order record is removed", hole, {"orphans": 8, "order": 2}),
    ("an order record is doubled", repeat, {"incomplete": 1, "order": 2}),
    ("the last order record is removed", lambda log: log.order.pop(), {"orphans": 8}),
]


@pytest.mark.parametrize(
    ("damage", "expected"), [each[1:] for each in DAMAGES], ids=[each[0] for each in DAMAGES]
)
def test_damage_is_found_by_name(
    kafka: Kafka, log: Log, damage: Callable[[Log], object], expected: dict[str, int]
) -> None:
    damage(log)
    report = verified(kafka, log)
    assert found(report) == expected
    assert not report.ok
    assert report.complaints()


def test_without_values_the_digests_find_it(kafka: Kafka, log: Log) -> None:
    """A model that the checker cannot recompute is still held against its order log."""
    alter(log, b",410.", b",411.")
    report = verified(kafka, log, values=False)
    assert found(report) == {"altered": 1}


@pytest.mark.parametrize(("damaged", "code"), [(False, 0), (True, 1)])
def test_the_command(kafka: Kafka, log: Log, damaged: bool, code: int) -> None:
    """`espha verify` says what is wrong, and says it to scripts with its exit code."""
    if damaged:
        log.outputs.pop(9)
    log.write(kafka)
    options = ["--bootstrap", kafka.bootstrap, "--model", str(SAMPLE_MODEL)]
    options += ["--prefix", log.plan.prefix, "--sum-window", SUM]
    result = CliRunner().invoke(app, ["verify", *options])
    assert result.exit_code == code
    assert ("lost: " in result.output) == damaged


def test_an_engine_that_has_nothing_to_do_is_idle(kafka: Kafka, log: Log) -> None:
    """It commits empty order records, oftener here than the checker looks."""
    log.write(kafka)
    stop = threading.Event()

    def idle() -> None:
        writer = FencedWriter(kafka.bootstrap, log.plan.prefix)
        writer.fence()
        record = {**log.order[-1], "inputs": [], "outputs": 0, "digest": digest([])}
        while not stop.wait(0.1):
            record["sequence"] += 1
            writer.commit([Record(log.plan.order_log, json.dumps(record).encode())])

    engine = threading.Thread(target=idle)
    engine.start()
    try:
        options = VerifyOptions(
            kafka.bootstrap, SAMPLE_MODEL, prefix=log.plan.prefix, sums=(SUM,), until_idle=1
        )
        report = verify(options)
    finally:
        stop.set()
        engine.join()
    assert report.ok
    assert report.rows_out == ROWS
