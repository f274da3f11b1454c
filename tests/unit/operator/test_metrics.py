"""What Prometheus reads of the operator."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator

import aiohttp
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from espha_operator import metrics
from espha_operator.api import KIND
from espha_operator.reconcile import fleet
from espha_operator.reconcile.fleet import Fleet
from espha_operator.reconcile.store import Store
from support.servers import wait_until
from tools import ROOT
from unit.operator.memory import refusal

STATUS = {
    "phase": "Degraded",
    "failovers": 3,
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "EnginesMissing",
            "message": "two of three",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
    ],
}


class _Steps:
    """Steps of a deployment; one called `bad` is refused."""

    def __init__(self, name: str) -> None:
        self._name = name

    def step(self) -> None:
        if self._name == "bad":
            raise refusal(403, "bad")

    def failed(self, why: str) -> None:
        """Nobody listens."""


class _Leases:
    def waiting(self) -> dict[str, str]:
        return {"plant": 'other/"two"'}


def ended() -> set[str]:
    """Return how steps have ended so far."""
    return {one.labels["result"] for told in fleet.STEPS.collect() for one in told.samples}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """Two deployments, one of which fails, after some steps."""
    monkeypatch.setattr(fleet, "INTERVAL", 0.01)
    made = Fleet(lambda _, name, uid: _Steps(name), lambda namespace: True)
    made.add(("shop", "good", "1"), later=False)
    made.add(("shop", "bad", "2"), later=False)
    wait_until(lambda: any(one.trouble for one in made.facts()), 30, "a step has failed")
    wait_until(lambda: ended() == {"well", "failed"}, 30, "one has gone well")
    yield made
    made.stop()


def read(kept: Fleet) -> dict[str, Metric]:
    """Return what Prometheus reads, by name."""
    store = Store()
    store.put(
        KIND,
        {
            "metadata": {"namespace": "shop", "name": "good", "resourceVersion": "7"},
            "status": STATUS,
        },
    )
    requests = Counter({("get", "Pod"): 5})
    told = metrics.registry(metrics.OperatorCollector(kept, _Leases(), store, requests))

    async def ask() -> str:
        async with (
            metrics.serving(told, 0, "127.0.0.1") as port,
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/metrics") as answer,
        ):
            assert answer.status == 200
            return await answer.text()

    families = text_string_to_metric_families(asyncio.run(ask()))
    return {f"{one.name}_total" if one.type == "counter" else one.name: one for one in families}


def values(metric: Metric) -> dict[tuple[str, ...], float]:
    """Return a metric's values by their labels' values, in the order of the labels' names."""
    return {
        tuple(one.labels[name] for name in sorted(one.labels)): one.value for one in metric.samples
    }


def test_deployments_are_told_with_what_their_status_says(kept: Fleet) -> None:
    told = read(kept)
    assert values(told["espha_deployment_phase"]) == {("good", "shop", "Degraded"): 1}
    assert values(told["espha_deployment_condition"]) == {
        ("good", "shop", "EnginesMissing", "False", "Ready"): 1
    }
    assert values(told["espha_deployment_failovers_total"]) == {("good", "shop"): 3}


def test_steps_requests_and_leases_are_told(kept: Fleet) -> None:
    told = read(kept)
    assert values(told["espha_operator_failing"]) == {("good", "shop"): 0, ("bad", "shop"): 1}
    assert values(told["espha_operator_last_step_seconds"])["good", "shop"] < 60
    assert values(told["espha_operator_requests_total"]) == {("Pod", "get"): 5}
    assert values(told["espha_operator_waiting"]) == {('other/"two"', "plant"): 1}
    counts = {
        one.labels["result"]: one.value
        for one in told["espha_operator_step_seconds"].samples
        if one.name.endswith("_count")
    }
    assert counts["well"] >= 1
    assert counts["failed"] >= 1
    assert told["process_resident_memory_bytes"].samples[0].value > 0


def test_a_deployment_whose_status_is_not_there_yet_has_no_phase(kept: Fleet) -> None:
    """Nor has one whose status another version of the operator has written."""
    store = Store()
    store.put(KIND, {"metadata": {"namespace": "shop", "name": "good"}, "status": {"phase": 7}})
    collector = metrics.OperatorCollector(kept, _Leases(), store, Counter())
    assert {one.name: len(one.samples) for one in collector.collect()} == {
        "espha_operator_requests": 0,
        "espha_operator_waiting": 1,
        "espha_operator_last_step_seconds": 2,
        "espha_operator_failing": 2,
        "espha_deployment_phase": 0,
        "espha_deployment_condition": 0,
        "espha_deployment_failovers": 0,
    }


def test_metrics_are_documented_all_and_no_others(kept: Fleet) -> None:
    page = (ROOT / "docs/reference/metrics.md").read_text()
    documented = set(re.findall(r"`(espha_(?:operator|deployment)_[a-z_]+)", page))
    told = {
        name for name in read(kept) if name.startswith("espha_") and not name.endswith("_created")
    }
    assert documented == told


def test_who_asks_all_the_time_is_answered_one_at_a_time(kept: Fleet) -> None:
    """However many ask, the operator's own work gets the processor."""
    at_once, most = Counter[str](), Counter[str]()
    lock = threading.Lock()

    class Slow(metrics.OperatorCollector):
        def collect(self) -> Iterator[Metric]:
            with lock:
                at_once["now"] += 1
                most["most"] = max(most["most"], at_once["now"])
            threading.Event().wait(0.01)  # long enough for others to come in between
            yield from super().collect()
            with lock:
                at_once["now"] -= 1

    told = metrics.registry(Slow(kept, _Leases(), Store(), Counter()))

    async def ask() -> list[int]:
        async with (
            metrics.serving(told, 0, "127.0.0.1") as port,
            aiohttp.ClientSession() as session,
        ):

            async def once() -> int:
                async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                    await answer.read()
                    return answer.status

            return await asyncio.gather(*(once() for _ in range(20)))

    assert asyncio.run(ask()) == [200] * 20
    assert most["most"] == 1
