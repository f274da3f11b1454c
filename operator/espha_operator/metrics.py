"""What the operator tells Prometheus: `GET /metrics`, of itself and of the deployments it keeps."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Final, Protocol

from aiohttp import web
from prometheus_client import GC_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from espha_operator.api import KIND
from espha_operator.api.status import Status
from espha_operator.reconcile.fleet import STEPS, Fleet
from espha_operator.resources.meta import Object

_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_WHICH: Final = ("namespace", "deployment")


class Leases(Protocol):
    """Who may work where."""

    def waiting(self) -> dict[str, str]:
        """Return the namespaces that other operators hold, and who."""


class Objects(Protocol):
    """The deployments, as the watch has brought them."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None when none is known."""


class OperatorCollector(Collector):
    """Makes metrics of what the operator knows when somebody asks."""

    def __init__(
        self, fleet: Fleet, leases: Leases, store: Objects, requests: Counter[tuple[str, str]]
    ) -> None:
        """Collect nothing yet.

        Args:
            fleet: the deployments, and how their steps go.
            leases: which namespaces other operators hold.
            store: the deployments themselves.
            requests: how many requests to the API server were made, by verb and kind.
        """
        self._fleet, self._leases, self._store, self._requests = fleet, leases, store, requests

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics but those of steps, which count by themselves."""
        yield from self._operator()
        yield from self._deployments()

    def _operator(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "espha_operator_requests",
            "Requests to the API server; one that watches counts once.",
            labels=["verb", "kind"],
        )
        for key, count in self._requests.copy().items():
            requests.add_metric(key, count)
        yield requests
        waiting = GaugeMetricFamily(
            "espha_operator_waiting",
            "1 for each namespace whose lease another operator holds: nothing is done there.",
            labels=["namespace", "holder"],
        )
        for key in self._leases.waiting().items():
            waiting.add_metric(key, 1)
        yield waiting

    def _deployments(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "espha_operator_last_step_seconds",
            "Seconds since a step of the deployment has ended; small, all is well.",
            labels=_WHICH,
        )
        failing = GaugeMetricFamily(
            "espha_operator_failing", "1 where the last step has failed.", labels=_WHICH
        )
        phase = GaugeMetricFamily(
            "espha_deployment_phase", "1 for the phase.", labels=[*_WHICH, "phase"]
        )
        condition = GaugeMetricFamily(
            "espha_deployment_condition",
            "1 for what a condition is: True, False or Unknown.",
            labels=[*_WHICH, "type", "status", "reason"],
        )
        failovers = CounterMetricFamily(
            "espha_deployment_failovers",
            "How often another engine has taken over, planned or not.",
            labels=_WHICH,
        )
        for one in self._fleet.facts():
            which = (one.namespace, one.name)
            age.add_metric(which, one.age)
            failing.add_metric(which, float(bool(one.trouble)))
            status = Status.read((self._store.get(KIND, *which) or {}).get("status"))
            if status.phase is not None:
                phase.add_metric([*which, status.phase], 1)
            if status.failovers is not None:
                failovers.add_metric(which, status.failovers)
            for each in status.conditions:
                condition.add_metric([*which, each.type, each.status, each.reason], 1)
        yield from (age, failing, phase, condition, failovers)


def registry(collector: OperatorCollector) -> CollectorRegistry:
    """Return all that is told: of the operator, its deployments, and its process."""
    made = CollectorRegistry()
    for one in (collector, STEPS, PROCESS_COLLECTOR, GC_COLLECTOR):
        made.register(one)
    return made


@contextlib.asynccontextmanager
async def serving(
    told: CollectorRegistry, port: int, host: str | None = None
) -> AsyncIterator[int]:
    """Serve as long as the context lasts.

    Args:
        told: what is served.
        port: 0 takes a free one.
        host: where to listen; all of the pod's addresses when None.

    Yields:
        The port.

    Raises:
        OSError: the port cannot be had.
    """
    lock = asyncio.Lock()  # one look at a time, however many ask

    async def answer(request: web.Request) -> web.Response:
        async with lock:
            body = await asyncio.to_thread(generate_latest, told)
        return web.Response(body=body, headers={"Content-Type": _TYPE})

    application = web.Application()
    application.router.add_get("/metrics", answer)
    runner = web.AppRunner(application, handle_signals=False, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
