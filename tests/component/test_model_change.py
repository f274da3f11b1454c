"""The model changes at a record of the order log, and back, on real engines under flowing rows."""

import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from chaos.here import ENVIRONMENT
from chaos.poisoned import RAISES, environment
from espha.checker.verify import VerifyOptions, verify
from espha.protocol.model_change import ModelAction
from espha.protocol.status import ReplicaStatus
from espha_operator.status.facts import Facts
from espha_operator.status.model_change import Change, decide, model_rolled_out
from espha_operator.status.reasons import Reason
from support.deployment import SAMPLE_MODEL, Deployment
from support.feeder import Feeder
from support.model_change import ask, digest, give, refusing
from support.replicas import CALM, LIMIT_S, Replica
from support.servers import Kafka, ZooKeeper, wait_until
from unit.operator.samples import MODEL, healthy

pytestmark = pytest.mark.component

SOURCE, OUTPUT = "cq/memory", "cq/outbound"
OLD = SAMPLE_MODEL.read_text(encoding="utf-8")
NEW = OLD.replace('"windowLength">20<', '"windowLength">5<')
REFUSING = refusing(OLD)


def row(number: int) -> str:
    return f"I,N,,{number},{4000 + number % 7},{9000 - number % 5},{1_700_000_000 + number}"


def rows() -> Iterator[tuple[str, str]]:
    """All rows, numbered from 0."""
    return ((SOURCE, row(number)) for number in count())


@pytest.fixture
def deployment(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Deployment]:
    """The sample model; its engines are not started."""
    (tmp_path / "old.xml").write_text(OLD, encoding="utf-8")
    (tmp_path / "new.xml").write_text(NEW, encoding="utf-8")
    made = Deployment(kafka, zookeeper, tmp_path, tmp_path / "old.xml", CALM)
    try:
        yield made
    finally:
        made.stop()


def standby(deployment: Deployment) -> Replica:
    """Return an engine that is not active."""
    active = deployment.active()
    return next(engine for engine in deployment.engines if engine is not active)


def go_over(deployment: Deployment, model: Path, xml: str) -> Replica:
    """Run a model in the shadow, then have the order log go over to it."""
    chosen = standby(deployment)
    give(chosen, model)
    wait_until(lambda: chosen.is_in("shadow"), LIMIT_S, f"{chosen.name} is in the shadow")

    def begun() -> bool:
        return ask(deployment.active(), "switch", digest(xml))[0] == 202

    wait_until(begun, LIMIT_S, f"{chosen.name} is in step when the switch is asked for")
    wait_until(lambda: chosen.is_in("active"), LIMIT_S, f"{chosen.name} leads")
    everybody(deployment, xml)
    return chosen


def everybody(deployment: Deployment, xml: str) -> None:
    """Wait until all engines run a model, in sync."""

    def runs() -> bool:
        told = [engine.status() for engine in deployment.engines]
        return all(one.get("in_sync") and one["model_digest"] == digest(xml) for one in told)

    wait_until(runs, LIMIT_S, f"all run model {digest(xml)[:4]}")


def processed(deployment: Deployment, more: int = 25) -> None:
    """Wait until so many rows more have come out."""
    topic = deployment.plan.outputs[OUTPUT]
    wanted = len(deployment.records(topic)) + more
    wait_until(lambda: len(deployment.records(topic)) >= wanted, LIMIT_S, f"{wanted} outputs")


class Output(NamedTuple):
    """A row that came out: by which model, with which key, number and sum, of which input."""

    model: str
    key: int
    number: int
    total: float
    offset: int


def outputs(deployment: Deployment) -> list[Output]:
    """Return all outputs in the order of the topic."""
    written = deployment.records(deployment.plan.outputs[OUTPUT])
    deployment.settle()
    model = {
        offset: record["model"]
        for record in deployment.order_records()  # they name what has been written
        for _, start, end in record["inputs"]
        for offset in range(start, end)
    }
    found = []
    for message in written:
        cells = message.value().decode().split(",")
        identity = dict(message.headers())["espha-id"].decode()
        offset = int(identity.split(":")[1])
        row = int(cells[2]), int(cells[3]), float(cells[7])
        found.append(Output(model[offset], *row, offset))
    return found


def check(deployment: Deployment, tmp_path: Path, sent: int, changes: int) -> list[Output]:
    """Check that each row came out once, and that the log is whole; return the outputs."""
    found = outputs(deployment)
    assert [one.number for one in found] == list(range(sent))
    models = [record["model"] for record in deployment.order_records()]
    assert sum(older != newer for older, newer in pairwise(models)) == changes
    for xml, length in ((OLD, 20), (NEW, 5)):
        path = tmp_path / f"{length}.xml"
        path.write_text(xml, encoding="utf-8")
        options = VerifyOptions(
            deployment.kafka.bootstrap,
            path,
            prefix=deployment.name,
            sums=(f"Record_Counter:{length}:sum20",),
        )
        report = verify(options)
        assert report.ok, report.complaints()
    return found


def refused_by_all(deployment: Deployment) -> None:
    """Ask for a model that nobody runs in step: nothing goes over to it."""
    code, answer = ask(deployment.active(), "switch", "f" * 64)
    assert (code, answer["reason"]) == (409, "not-in-step")
    others = [engine for engine in deployment.engines if engine is not deployment.active()]
    code, answer = ask(others[0], "switch", "f" * 64)
    assert (code, answer["reason"]) == (409, "not-active")
    assert all(not record.get("switch") for record in deployment.order_records())


@pytest.mark.parametrize("back", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_model_is_changed_and_changed_back(
    deployment: Deployment, tmp_path: Path, back: bool
) -> None:
    """The new one has seen rows in the shadow; the old one goes on as if it had never left."""
    deployment.start(2)
    old, new = digest(OLD), digest(NEW)
    refused_by_all(deployment)
    with Feeder(deployment, rows(), 20) as feeder:
        processed(deployment)
        leads = go_over(deployment, tmp_path / "new.xml", NEW)
        processed(deployment)
        assert any(
            path.name.startswith("snapshot-")
            for engine in deployment.engines
            for path in deployment.snapshots(engine).of(old).files()
        ), "the old model's state is kept"
        if back:
            again = go_over(deployment, tmp_path / "old.xml", OLD)
            assert again is not leads
            assert again.told()["since"] == 0, "it has the state of the run from the beginning"
            processed(deployment)
        sent = feeder.stop()
    wait_until(lambda: len(outputs(deployment)) >= sent, LIMIT_S, "all rows are out")
    found = check(deployment, tmp_path, sent, changes=1 + back)
    for one in found:
        if one.model == old:
            wanted = sum(range(max(0, one.number - 19), one.number + 1))
            assert (one.key, one.total) == (one.number, wanted)
    begun = next(r for r in deployment.order_records() if r.get("shadow"))
    behind = dict(begun["shadow"]["cursors"])[deployment.plan.inputs[SOURCE]]
    first = next(one.number for one in found if one.offset >= behind)
    by_new = [one for one in found if one.model == new]
    assert by_new[0].number > first, "it had seen rows when it began to lead"
    for one in by_new:
        wanted = sum(range(max(first, one.number - 4), one.number + 1))
        assert (one.key, one.total) == (one.number - first, wanted)


@pytest.mark.long
def test_the_log_goes_over_once_however_often_the_active_engine_dies(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.start()
    new = digest(NEW)
    chosen = standby(deployment)
    with Feeder(deployment, rows(), 20) as feeder:
        processed(deployment, 5)
        give(chosen, tmp_path / "new.xml")
        for _ in range(5):
            kill(deployment, chosen)
        wait_until(lambda: chosen.is_in("shadow"), LIMIT_S, "it is in the shadow")
        for _ in range(5):
            ask(deployment.active(), "switch", new)
            kill(deployment, None)
        wait_until(
            lambda: (
                deployment.order_records()[-1]["model"] == new
                or ask(deployment.active(), "switch", new)[0] == 0
            ),
            LIMIT_S,
            "the log goes over",
            1.0,
        )
        everybody(deployment, NEW)
        processed(deployment, 5)
        sent = feeder.stop()
    wait_until(lambda: len(outputs(deployment)) >= sent, LIMIT_S, "all rows are out")
    check(deployment, tmp_path, sent, changes=1)


def kill(deployment: Deployment, spared: Replica | None) -> None:
    """Kill the active engine's process, and wait for a successor.

    One that was told to switch may have ended by itself meanwhile.
    """
    active = deployment.active()
    assert active is not spared, "it leads although the log is of the old model"
    before = active.told()["epoch"]
    with suppress(LookupError, ProcessLookupError):
        active.kill_child()

    def newer() -> bool:
        told = [engine.status() for engine in deployment.engines]
        return any(one["epoch"] > before for one in told if one.get("state") == "active")

    wait_until(newer, LIMIT_S, "somebody takes over")


@pytest.mark.long
def test_a_model_that_fails_in_the_shadow_never_leads(
    deployment: Deployment, tmp_path: Path
) -> None:
    """It ends its own process again and again; who leads, and who stands by, notices nothing."""
    deployment.start()
    chosen = standby(deployment)
    others = [engine for engine in deployment.engines if engine is not chosen]
    chosen.environment.update(environment())
    give(chosen, tmp_path / "new.xml")
    wait_until(lambda: chosen.is_in("shadow"), LIMIT_S, "it is in the shadow")
    epoch = deployment.active().told()["epoch"]
    deployment.publish(SOURCE, [row(1), row(RAISES), row(2)])
    wait_until(
        lambda: "this record is poison" in str(chosen.status().get("message")),
        LIMIT_S,
        "its status says why it fails",
    )
    wait_until(lambda: len(deployment.lines(OUTPUT)) == 3, LIMIT_S, "all rows are out")
    code, answer = ask(deployment.active(), "switch", digest(NEW))
    assert (code, answer["reason"]) == (409, "not-in-step")
    assert deployment.active().told()["epoch"] == epoch
    assert all(engine.told()["in_sync"] for engine in others)
    assert [engine.told()["restarts"] for engine in others] == [0, 0]
    assert ask(deployment.active(), "end", digest(NEW))[0] == 202
    # Only the new model finds the row poison.
    chosen.environment["PYTHONPATH"] = ENVIRONMENT["PYTHONPATH"]
    give(chosen, tmp_path / "old.xml")
    deployment.wait_in_sync()
    assert not deployment.order_records()[-1].get("shadow")


def facts(deployment: Deployment, xml: str) -> Facts:
    """Return what the operator sees of the engines that answer, when a model is wanted."""
    answers = (one.status() for one in deployment.engines)
    told = tuple(ReplicaStatus.model_validate(one) for one in answers if one)
    return healthy(model=dataclasses.replace(MODEL, digest=digest(xml)), engines=told)


@pytest.mark.long
def test_a_model_that_refuses_all_its_input_never_leads(
    deployment: Deployment, tmp_path: Path
) -> None:
    """It fails on nothing and gets in step; only its dead letters tell that it is of no use."""
    deployment.start()
    path, chosen = tmp_path / "refusing.xml", standby(deployment)
    path.write_text(REFUSING, encoding="utf-8")
    deployment.publish(SOURCE, map(row, range(5)))
    wait_until(lambda: len(deployment.lines(OUTPUT)) == 5, LIMIT_S, "the old model has worked")
    give(chosen, path)
    wait_until(lambda: chosen.is_in("shadow"), LIMIT_S, "it is in the shadow")
    deployment.publish(SOURCE, map(row, range(5, 8)))
    wait_until(lambda: chosen.status().get("events_in") == 3, LIMIT_S, "it has taken the rows")
    seen = facts(deployment, REFUSING)
    assert decide(seen) == Change()
    verdict = model_rolled_out(seen)
    assert verdict.reason is Reason.SHADOW_FAILED
    assert "has made 3 dead letters of 3 input records" in verdict.message
    deployment.settle()
    assert len(deployment.lines(OUTPUT)) == 8
    assert deployment.records(deployment.plan.dead_letters) == []
    give(chosen, tmp_path / "new.xml")
    ended = decide(facts(deployment, NEW))
    assert ended == Change(ModelAction.END, digest(REFUSING))
    assert ask(deployment.active(), "end", ended.model)[0] == 202
    wait_until(lambda: chosen.is_in("shadow"), LIMIT_S, "the mended one is in the shadow")
    deployment.publish(SOURCE, [row(8)])
    switch = Change(ModelAction.SWITCH, digest(NEW))
    wait_until(lambda: decide(facts(deployment, NEW)) == switch, LIMIT_S, "it may lead")
