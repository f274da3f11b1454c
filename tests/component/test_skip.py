"""`espha skip`, where retention has removed input that no engine has processed."""

import json
import os
import shutil
import signal
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from typer.testing import CliRunner

from espha.cli import app
from espha.connectors.topics import topic_plan
from espha.kafka.reader import Offsets
from espha.kafka.writer import FencedWriter, Record
from espha.kernel import SEMANTICS
from espha.protocol.order import FORMAT, OrderRecord
from espha.reader import read_project
from espha.recovery.skip import NEWEST, order_record, skip
from support.deployment import SAMPLE_MODEL, Deployment
from support.replicas import Replica
from support.sample_rows import OUTPUT, SOURCE, cut, espha, expected, keep, processed, publish
from support.servers import Kafka, wait_until

pytestmark = pytest.mark.component

Deploy = Callable[[int], Deployment]


TAIL = OrderRecord(
    format=FORMAT,
    sequence=0,
    inputs=(),
    clock=1_700_000_000_000,
    outputs=0,
    digest="d",
    model="m",
    engine="engine-0",
    epoch=0,
    runtime="r",
    semantics=SEMANTICS,
)
"""What comes before the first order record."""


def signal_all(deployment: Deployment, number: signal.Signals) -> None:
    """Freeze or thaw all engines; supervisors, too, who would end a frozen child."""
    children = [engine.child() for engine in deployment.engines]
    for engine, child in zip(deployment.engines, children, strict=True):
        engine.kill(number)
        os.kill(child, number)


def advises(engine: Replica) -> bool:
    return "`espha skip`" in (engine.status().get("message") or "")


def skipped(deployment: Deployment, *words: str) -> dict[str, Any]:
    code, printed = espha(deployment, "skip", "--json", *words)
    assert code == 0, printed
    answer: dict[str, Any] = json.loads(printed)
    return answer


@pytest.mark.long
def test_engines_go_on_behind_input_that_retention_has_removed(deploy_sample: Deploy) -> None:
    """They end, name it and what to do; then nothing is missing but what is gone."""
    deployment = deploy_sample(2)
    topic = deployment.plan.inputs[SOURCE]
    publish(deployment, *range(30))
    processed(deployment, 30)
    for engine in deployment.engines:
        keep(deployment, engine)
    for engine in deployment.engines:
        engine.stop()
    publish(deployment, *range(30, 40))
    gone = cut(deployment, topic)
    publish(deployment, *range(40, 50))
    for engine in deployment.engines:
        engine.start()
    for engine in deployment.engines:
        wait_until(partial(advises, engine), 240, f"{engine.name} says what to do")
        assert f"topic {topic}: records " in engine.told()["message"]
        assert not engine.told()["in_sync"]

    planned = skipped(deployment, "--dry-run")
    assert planned["sequence"] is None
    (step,) = planned["skipped"]
    assert (step["window"], step["topic"], step["to"], step["oldest"]) == (
        SOURCE,
        topic,
        gone,
        gone,
    )
    done = skipped(deployment)
    assert done["skipped"] == [step]
    assert skipped(deployment) == {"sequence": None, "skipped": []}

    deployment.wait_in_sync()
    processed(deployment, 40)
    publish(deployment, 50)
    processed(deployment, 41)
    assert deployment.lines(OUTPUT) == expected([*range(30), *range(40, 51)])
    record = next(one for one in deployment.order_records() if one.get("resumes"))
    assert (record["sequence"], record["resumes"]) == (done["sequence"], [[topic, gone]])
    code, report = espha(deployment, "verify", "--no-values", "--json")
    assert code == 0, report


@pytest.mark.long
def test_a_backlog_is_left_out_while_an_engine_leads(deploy_sample: Deploy) -> None:
    """The one that leads is fenced; who begins with the log's beginning leaves it out, too."""
    deployment = deploy_sample(2)
    publish(deployment, *range(10))
    processed(deployment, 10)
    epoch = deployment.order_records()[-1]["epoch"]
    signal_all(deployment, signal.SIGSTOP)
    publish(deployment, *range(10, 20))
    answer = skipped(deployment, "--to", "newest")
    assert answer["skipped"][0]["window"] == SOURCE
    signal_all(deployment, signal.SIGCONT)
    deployment.wait_in_sync()
    publish(deployment, *range(20, 30))
    processed(deployment, 20)
    assert deployment.lines(OUTPUT) == expected([*range(10), *range(20, 30)])
    assert deployment.order_records()[-1]["epoch"] > epoch + 1
    code, printed = espha(deployment, "verify", "--sum-window", "Record_Counter:20:sum20", "--json")
    report = json.loads(printed)
    assert (code, report["ok"], report["left_out"]) == (0, True, 10), printed

    again = deployment.active()
    again.stop()
    shutil.rmtree(deployment.snapshots(again).folder, ignore_errors=True)
    again.environment["ESPHA_PEERS"] = ""
    again.start()
    deployment.wait_in_sync()
    publish(deployment, 30)
    processed(deployment, 21)
    assert deployment.lines(OUTPUT)[-1] == expected([*range(10), *range(20, 31)])[-1]


def test_the_order_log_is_read_to_where_the_record_comes(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is cut off from the others may show an older end to whoever reads it."""
    plan = topic_plan(read_project(SAMPLE_MODEL.read_text()), f"p{uuid.uuid4().hex[:8]}")
    kafka.make_topics(*plan.all())
    (source,) = plan.inputs.values()
    writer = FencedWriter(kafka.bootstrap, plan.order_log)
    writer.fence()
    writer.commit([Record(source, b"I,N,1")])
    tail = TAIL
    for _ in range(2):
        tail = order_record(tail, [])
        writer.commit([Record(plan.order_log, tail.encode())])
    settled, ends, hidden = Offsets.settled, Offsets.end, list[int]()

    def hide(self: Offsets, topic: str) -> int:
        end = settled(self, topic)
        hidden.append(end - 2)
        return end

    def end(self: Offsets, topic: str, limit_s: float = 30) -> int:
        return hidden[0] if hidden and topic == plan.order_log else ends(self, topic, limit_s)

    monkeypatch.setattr(Offsets, "settled", hide)
    monkeypatch.setattr(Offsets, "end", end)
    sequence, (step,) = skip(kafka.bootstrap, plan, "", NEWEST)
    assert (sequence, step.place.topic) == (3, source)


def test_a_deployment_without_order_records_has_nothing_to_skip(kafka: Kafka) -> None:
    plan = ["--prefix", "never.seen", "--bootstrap", kafka.bootstrap, "--model", str(SAMPLE_MODEL)]
    kafka.make_topics("never.seen.M", "never.seen.I")
    result = CliRunner().invoke(app, ["skip", *plan])
    assert result.exit_code == 2
    assert "topic never.seen.M has no order record" in result.output
