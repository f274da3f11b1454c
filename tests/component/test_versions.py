"""An espha that computes something else than the one before it: upgrades with replicas of both."""

import shutil
from collections.abc import Callable

import pytest

from chaos.newer import MENDED, SEMANTICS, environment
from support.deployment import Deployment
from support.replicas import Replica
from support.sample_rows import OUTPUT, espha, expected, processed, publish
from support.servers import wait_until

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
    """What stands in the log stays; a newer replica takes the state from behind a difference.

    When all are of the newer espha and none has a state, nobody can recompute the log: it stands.
    """
    deployment = deploy_sample(3)
    counters = [MENDED if at == 7 else at for at in range(30)]
    publish(deployment, *counters[:15])
    processed(deployment, 15)
    publish(deployment, *counters[15:])
    processed(deployment, 30)

    first = deployment.active()
    others = [engine for engine in deployment.engines if engine is not first]
    upgrade(deployment, others[0])
    status = others[0].status()
    assert (status["semantics"], status["diverged_total"]) == (SEMANTICS, 1)
    assert f"semantics 1 there, {SEMANTICS} here" in status["diverged"]
    counters += [30, 31]
    publish(deployment, 30, 31)
    processed(deployment, 32)
    assert others[0].status()["diverged_total"] == 1, "it agrees with all that is not mended"

    upgrade(deployment, others[1])
    upgrade(deployment, first)
    assert all(one.status()["semantics"] == SEMANTICS for one in deployment.engines)
    publish(deployment, MENDED, *range(33, 60))
    counters += [MENDED + 1, *range(33, 60)]
    processed(deployment, 60)
    assert deployment.lines(OUTPUT) == expected(counters)

    for engine in deployment.engines:
        forget(deployment, engine)
    for engine in deployment.engines:
        engine.start()
    wait_until(
        lambda: all(one.status().get("in_sync") for one in deployment.engines),
        240,
        "all are in sync again",
        moved=lambda: [one.status().get("diverged_total") for one in deployment.engines],
    )
    publish(deployment, 60)
    counters.append(60)
    processed(deployment, 61)
    assert deployment.lines(OUTPUT) == expected(counters)
    code, report = espha(deployment, "verify", "--no-values", "--json")
    assert code == 0, report
