"""A project with every window type on three engines: two take-overs, and all stay in sync."""

import random
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from espha.checker.batches import check_batches
from espha.checker.order import check_order
from espha.checker.watch import read_all, read_written
from espha.kernel import Kernel
from espha.model.events import BadRecord
from espha.reader import read_project
from espha.records.text import line_formatter, parse_event
from support.deployment import Deployment
from support.every import published
from support.feeder import Feeder
from support.replicas import CALM, LIMIT_S, Replica
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

PROJECT = read_project(published())
ROWS_A_SECOND = 40
CLOCKED = {"q/count", "q/lately"}
"""Windows that say something when only time passes."""


@pytest.fixture
def deployment(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Deployment]:
    """Three engines of the project, in sync."""
    path = tmp_path / "every.xml"
    path.write_text(published(), encoding="utf-8")
    made = Deployment(kafka, zookeeper, tmp_path, path, {**CALM, "ESPHA_SNAPSHOT_INTERVAL_S": "5"})
    try:
        made.start()
        yield made
    finally:
        made.stop()


def ev(chance: random.Random) -> str:
    """Any row of the first source: also such that windows refuse."""
    opcode = chance.choice(["I", "I", "U", "P", "P", "P", "D", "SD"])
    cells = [chance.choice(["", "0", "1", "2", "3"]) for _ in "kx"]
    y = chance.choice(["0.1", "-2.25", "1e6", "", "NaN"])
    return f"{opcode},N,{chance.randrange(9)},{','.join(cells)},{y},{chance.choice('abä')}"


def row(chance: random.Random) -> tuple[str, str]:
    """Any row: (source, text)."""
    source = chance.choice(["ev"] * 6 + ["table", "log", "places", "fences"])
    small = chance.randrange(4)
    text = {
        "ev": ev(chance),
        "table": f"{chance.choice(['I', 'U', 'P', 'SD'])},N,{small},name {chance.randrange(99)}",
        "log": f"I,N,,line {small}",
        "places": f"P,N,{small},{small / 3},{chance.random()}",
        "fences": f"P,N,f{small},0.5,0.5,{chance.choice(['1', '500'])},,text",
    }[source]
    return f"q/{source}", text


def rows() -> Iterator[tuple[str, str]]:
    """One fence for every place, then any rows."""
    yield "q/fences", "P,N,f0,0.5,0.5,500,,text"
    chance = random.Random(11)
    while True:
        yield row(chance)


def order_log(deployment: Deployment) -> list[dict[str, Any]]:
    return deployment.order_records()


def taken(deployment: Deployment) -> int:
    """How many input records the active engine has taken; 0 when there is none."""
    told = [engine.status() for engine in deployment.engines]
    return max((one["events_in"] for one in told if one.get("state") == "active"), default=0)


def wait_for_rows(deployment: Deployment, rows: int) -> None:
    wait_until(lambda: taken(deployment) >= rows, LIMIT_S, f"{rows} rows are taken")


def reached(engine: Replica, sequence: int) -> bool:
    status = engine.status()
    return bool(status.get("in_sync")) and status["sequence"] >= sequence


def goes_on(deployment: Deployment, sequence: int) -> bool:
    told = [engine.status() for engine in deployment.engines]
    return any(one["sequence"] >= sequence for one in told if one.get("state") == "active")


def is_idle(record: dict[str, Any]) -> bool:
    """Whether time alone brought about outputs."""
    return not record["inputs"] and record["outputs"] > 0


def recomputed(deployment: Deployment) -> dict[str, list[str]]:
    """What the kernel alone gives for each output window, from order log and inputs."""
    kernel = Kernel(PROJECT)
    sources = {topic: path for path, topic in deployment.plan.inputs.items()}
    records = {topic: read_all(deployment.kafka.bootstrap, topic) for topic in sources}
    write = {path: line_formatter(PROJECT.windows[path].fields) for path in deployment.plan.outputs}
    lines: dict[str, list[str]] = {path: [] for path in deployment.plan.outputs}
    for record in order_log(deployment):
        outputs = kernel.advance(record["clock"])
        for topic, start, end in record["inputs"]:
            for each in records[topic]:
                if not start <= each.offset < end:
                    continue
                event = parse_event(each.value, PROJECT.windows[sources[topic]].fields)
                try:
                    outputs += kernel.publish(sources[topic], event, record["clock"])
                except BadRecord:
                    continue
        for path, event in outputs:
            lines[path].append(write[path](event))
    return lines


@pytest.mark.long
def test_every_window_stays_in_sync_through_take_overs(deployment: Deployment) -> None:
    """Two active engines die under load; then only time passes; nobody is out of sync."""
    with Feeder(deployment, rows(), ROWS_A_SECOND) as feeder:
        for fault in ("child", "supervisor"):
            wait_for_rows(deployment, feeder.sent + 40)
            active = deployment.active()
            if fault == "child":
                active.kill_child()
            else:
                active.stop()
                active.start()
            deployment.active_but(active)
        sent = feeder.stop()
    wait_for_rows(deployment, sent)
    before = deployment.active().told()["sequence"]
    wait_until(partial(goes_on, deployment, before + 3), LIMIT_S, "time alone makes order records")
    deployment.wait_in_sync()
    last = order_log(deployment)[-1]["sequence"]
    for engine in deployment.engines:
        wait_until(partial(reached, engine, last), LIMIT_S, f"{engine.name} is in sync")
        assert engine.told()["diverged_total"] == 0, engine.status()
    check(deployment)
    assert order_log(deployment)[-1]["epoch"] >= 3


def end(deployment: Deployment) -> None:
    """End all engines, the active one last: it commits what is under way, and leaves no rest."""
    active = deployment.active()
    for engine in deployment.engines:
        if engine is not active:
            engine.stop()
    active.kill(signal.SIGTERM)
    assert active.process is not None
    active.process.wait(LIMIT_S)
    deployment.settle()


def check(deployment: Deployment) -> None:
    """The order log is whole, its digests are those of the outputs, and these are right."""
    end(deployment)
    bootstrap = deployment.kafka.bootstrap
    order = [each.value for each in read_all(bootstrap, deployment.plan.order_log)]
    assert check_order(order).problems == []
    topics = [*deployment.plan.outputs.values(), deployment.plan.dead_letters]
    written = {topic: read_written(bootstrap, topic) for topic in topics}
    assert check_batches(order, written, deployment.plan.order_log).problems() == []
    expected = recomputed(deployment)
    for path, lines in expected.items():
        assert lines, f"{path} said nothing"
        assert deployment.lines(path) == lines, path
    idle = [record["sequence"] for record in order_log(deployment) if is_idle(record)]
    assert len(idle) >= 2
    clocked = f"{deployment.plan.order_log}:{idle[-1]}:".encode()
    topics_of = {deployment.plan.outputs[path] for path in CLOCKED}
    said = {
        topic for topic, records in written.items() for each in records
        if dict(each.headers)["espha-id"].startswith(clocked)
    }  # fmt: skip
    assert said
    assert said <= topics_of
