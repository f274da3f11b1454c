"""Engines that begin with snapshots, on real Kafka, ZooKeeper and Spark."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer

from espha.recovery.plain import loads, write
from espha.recovery.store import SnapshotMeta, check, header_of
from support.deployment import Deployment
from support.replicas import LIMIT_S, Replica
from support.sample_rows import OUTPUT, SOURCE, cut, expected, keep, publish
from support.servers import wait_until

pytestmark = pytest.mark.component

SUM = "cq/sum20"
Deploy = Callable[[int], Deployment]


def feed(deployment: Deployment, *numbers: int) -> None:
    """Publish rows one by one, each in a batch of its own, and wait until all engines have them."""
    active = deployment.active()
    for number in numbers:
        publish(deployment, number)
        wait_until(partial(has, active, number + 1), 60, f"{active.name} has row {number}")
    for engine in deployment.engines:
        wait_until(partial(has, engine, numbers[-1] + 1), LIMIT_S, f"{engine.name} has all rows")


def has(engine: Replica, rows: int) -> bool:
    return bool(engine.status().get("events_in") == rows)


def check_output(deployment: Deployment, rows: int) -> None:
    """Check what a reader sees, which it does a moment after the engine has committed it."""
    wait_until(lambda: len(deployment.lines(OUTPUT)) >= rows, 60, f"{rows} outputs")
    assert deployment.lines(OUTPUT) == expected(range(rows))


def restart(deployment: Deployment, engine: Replica) -> dict[str, Any]:
    """Kill an engine as a whole, start it again, and return its status when it is in sync."""
    engine.stop()
    engine.start()
    deployment.wait_in_sync()
    return engine.told()


def standby_of(deployment: Deployment) -> Replica:
    active = deployment.active()
    return next(engine for engine in deployment.engines if engine is not active)


def log_of(engine: Replica) -> list[dict[str, Any]]:
    """Return an engine's log, without what is no JSON (Spark's lines)."""
    lines = (engine.folder / f"{engine.name}.log").read_text().splitlines()
    # what Java says may stand behind it, on the same line
    decoder = json.JSONDecoder()
    return [decoder.raw_decode(line)[0] for line in lines if line.startswith("{")]


def test_a_restarted_engine_replays_only_what_is_behind_its_snapshot(deploy_sample: Deploy) -> None:
    """And a damaged one is passed over, and what it comes to is right: it takes over."""
    deployment = deploy_sample(2)
    standby, active = standby_of(deployment), deployment.active()
    feed(deployment, *range(30))
    first = keep(deployment, standby)
    feed(deployment, *range(30, 40))
    second = keep(deployment, standby)
    feed(deployment, *range(40, 43))
    status = restart(deployment, standby)
    # An idle active engine writes a record now and then, so only the difference is known.
    behind = status["sequence"] - second
    assert (status["snapshot_loaded"], status["replayed"]) == (second, behind)
    assert status["batches"] == status["sequence"]

    newest = deployment.snapshots(standby).files()[0]
    content = bytearray(newest.read_bytes())
    content[-5] ^= 1
    newest.write_bytes(content)
    status = restart(deployment, standby)
    behind = status["sequence"] - first
    assert (status["snapshot_loaded"], status["replayed"]) == (first, behind)
    passed_over = [line for line in log_of(standby) if "snapshot passed over" in line["event"]]
    assert [(line["snapshot"], line["reason"]) for line in passed_over] == [
        (newest.name, "the checksum of its body is wrong")
    ]

    active.kill_child()
    assert deployment.active_but(active) is standby
    deployment.wait_in_sync()
    feed(deployment, *range(43, 46))
    check_output(deployment, 46)


@pytest.mark.long
def test_an_engine_without_snapshots_takes_one_from_a_peer(deploy_sample: Deploy) -> None:
    """The log is cut behind it: there is no other way."""
    deployment = deploy_sample(2)
    standby, active = standby_of(deployment), deployment.active()
    feed(deployment, *range(10))
    taken = keep(deployment, active)
    feed(deployment, *range(10, 12))
    header = check(deployment.snapshots(active).files()[0]).header
    topic = deployment.plan.inputs[SOURCE]
    cut(deployment, deployment.plan.order_log, header.order_log)
    cut(deployment, topic, header.inputs[topic].read)
    status = restart(deployment, standby)
    behind = status["sequence"] - taken  # with what an idle active engine has written
    assert (status["snapshot_loaded"], status["replayed"]) == (taken, behind)
    assert len(deployment.snapshots(standby).files()) == 1
    active.kill_child()
    deployment.active_but(active)
    feed(deployment, 12)
    check_output(deployment, 13)


@pytest.mark.long
def test_what_is_missing_is_named(deploy_sample: Deploy) -> None:
    """The log is cut and the snapshot damaged: the engine does not pretend to know the state."""
    deployment = deploy_sample(1)
    engine = deployment.engines[0]
    feed(deployment, *range(4))
    taken = keep(deployment, engine)
    header = check(deployment.snapshots(engine).files()[0]).header
    cut(deployment, deployment.plan.order_log, header.order_log)
    status = restart(deployment, engine)
    assert status["snapshot_loaded"] == taken
    feed(deployment, *range(4, 6))
    damaged = deployment.snapshots(engine).files()[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    engine.stop()
    engine.start()
    wait_until(lambda: bool(engine.status().get("message")), 120, "a message")
    status = engine.told()
    assert not status["in_sync"]
    topic = deployment.plan.order_log
    assert f"topic {topic}: order records 1 to {taken} are gone (retention)" in status["message"]
    assert f"{damaged.name}: it ends too early" in status["message"]
    cut(deployment, topic)
    said = "come next after order record 0"
    wait_until(lambda: said in str(engine.status().get("message")), 120, "why")


def test_a_stray_record_on_the_order_log_keeps_nobody_away(deploy_sample: Deploy) -> None:
    """The standby takes the state of the active engine, which has gone on behind it, and leads."""
    deployment = deploy_sample(2)
    active, standby = deployment.active(), standby_of(deployment)
    feed(deployment, *range(5))
    producer = Producer({"bootstrap.servers": deployment.kafka.bootstrap})
    producer.produce(deployment.plan.order_log, b"hello", partition=0)
    assert producer.flush(60) == 0
    publish(deployment, 5)
    wait_until(lambda: "not an order" in (standby.status().get("diverged") or ""), 120, "it ends")
    deployment.wait_in_sync()
    assert standby.told()["snapshot_loaded"] is not None
    active.stop()
    wait_until(lambda: standby.is_in("active"), 60, "it leads")
    publish(deployment, 6)
    wait_until(partial(has, standby, 7), 60, "it goes on")
    check_output(deployment, 7)


@pytest.mark.long
def test_a_diverged_engine_rebuilds_and_says_so(deploy_sample: Deploy) -> None:
    """A snapshot whose checksum is right and whose state is wrong leads to other outputs."""
    deployment = deploy_sample(2)
    standby = standby_of(deployment)
    feed(deployment, *range(25))
    good = keep(deployment, standby)
    feed(deployment, 25)
    keep(deployment, standby)
    store = deployment.snapshots(standby)
    kept = check(store.files()[0])
    header = kept.header
    state = loads(kept.path.read_bytes()[kept.offset :])
    ((*before, (*others, last)),) = state["windows"][SUM]
    state["windows"][SUM] = [(*before, (*others, last + 1))]
    mark = SnapshotMeta(**{name: getattr(header, name) for name in SnapshotMeta.model_fields})
    draft = store.draft(mark, header.engine, header.runtime)
    with draft.path.open("wb") as file:
        file.seek(draft.offset)
        sums = write(state, file.write)
    store.finish(draft, header_of(mark, sums, header.engine, header.runtime, header.made))
    feed(deployment, 26)
    standby.stop()
    standby.start()
    wait_until(lambda: bool(standby.status().get("diverged")), 120, "it has diverged")
    deployment.wait_in_sync()
    status = standby.told()
    assert (status["diverged_total"], status["snapshot_loaded"]) == (1, good)
    assert f"order record {header.sequence + 1}: 1 outputs" in status["diverged"]
    assert status["message"] == ""
    feed(deployment, 27)
    good = keep(deployment, standby)
    status = restart(deployment, standby)
    # An active engine that is in doubt commits records without input.
    assert (status["diverged_total"], status["snapshot_loaded"]) == (1, good)
    check_output(deployment, 28)
