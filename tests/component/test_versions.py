"""An espha that computes something else than the one before it: upgrades with replicas of both."""

import shutil
from collections.abc import Callable

import pytest

from chaos.newer import MENDED, SEMANTICS, environment
from support.deployment import Deployment
from support.replicas import Replica
from support.sample_rows import OUTPUT, espha, expected, processed, publish

pytestmark = [pytest.mark.component, pytest.mark.long]


def forget(deployment: Deployment, engine: Replica) -> None:
    """End an engine, and take its volume away: it has to replay the whole log."""
    engine.stop()
    shutil.rmtree(deployment.snapshots(engine).folder, ignore_errors=True)


def upgrade(deployment: Deployment, engine: Replica) -> None:
    forget(deployment, engine)
    engine.environment.update(environment())
    engine.start()
    deployment.wait_in_sync()


def test_an_upgrade_that_mends_a_mistake_is_rolled_out_and_survives_a_restart(
    deploy_sample: Callable[[int], Deployment],
) -> None:
    """A newer replica makes something else of each order record: it is in sync all the same.

    What stands in the log stays, whoever replays it; what comes behind a take-over is the newer
    one's.
    """
    deployment = deploy_sample(3)
    counters = [MENDED] * 15
    publish(deployment, *counters)
    processed(deployment, 15)

    first = deployment.active()
    others = [engine for engine in deployment.engines if engine is not first]
    for engine in others:
        upgrade(deployment, engine)
        publish(deployment, MENDED)
        counters.append(MENDED)
        processed(deployment, len(counters))
    assert [one.told()["semantics"] for one in others] == [SEMANTICS, SEMANTICS]
    assert [one.told()["diverged_total"] for one in others] == [0, 0]
    assert deployment.active() is first
    quiet = range(20, 50)  # more rows than the model adds up
    publish(deployment, *quiet)
    counters += quiet
    processed(deployment, len(counters))

    upgrade(deployment, first)
    publish(deployment, MENDED, *range(33, 40))
    counters += [MENDED + 1, *range(33, 40)]
    processed(deployment, len(counters))
    assert deployment.lines(OUTPUT) == expected(counters)

    for engine in deployment.engines:
        forget(deployment, engine)
    for engine in deployment.engines:
        engine.start()
    deployment.wait_in_sync()
    publish(deployment, 60)
    counters.append(60)
    processed(deployment, len(counters))
    assert deployment.lines(OUTPUT) == expected(counters)
    assert [one.told()["diverged_total"] for one in deployment.engines] == [0, 0, 0]
    code, report = espha(deployment, "verify", "--no-values", "--json")
    assert code == 0, report
