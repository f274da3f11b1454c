"""Bringing pods up to date, as `rolling` decides: evictions, and switchovers before them."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from kubernetes.client.exceptions import ApiException

from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha_operator.api.deployment import Deployment
from espha_operator.reconcile import brokers, observe, rolling, switchover
from espha_operator.reconcile.cluster import Cluster, reason
from espha_operator.reconcile.observe import Observed
from espha_operator.reconcile.rolling import Brokers, RollPod, RollSet, Scene, Step
from espha_operator.resources.events import event
from espha_operator.resources.meta import Object
from espha_operator.status.facts import Facts

# Seconds between two requests to the active engine to hand over: each one costs a pause of output.
AGAIN = 10.0
_BUSY = 429
_GONE = (404, 409)
# No step waits for a broker that does not answer. Of all deployments together.
_ASKING = ThreadPoolExecutor(max_workers=16, thread_name_prefix="brokers")
_LOG = logging.getLogger(__name__)


class Roller:
    """Takes one step of a deployment's roll-out at a time; nothing that it remembers is needed."""

    def __init__(
        self,
        cluster: Cluster,
        token: Callable[[Deployment], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember when an engine was asked to hand over, and what Kafka was asked."""
        self._cluster, self._token, self._clock = cluster, token, clock
        self._due = 0.0
        self._asked: Future[Brokers] | None = None
        self._said = ""

    def step(self, resource: Object, facts: Facts, seen: Observed, hold: str = "") -> str:
        """Do what is next.

        Args:
            resource: the deployment as read.
            facts: what runs.
            seen: the same, with its pods.
            hold: why nothing that is well may be restarted now; empty: it may.

        Returns:
            What is done or waited for, as a sentence; empty when all is up to date.
        """
        self._said = self._step(resource, facts, seen, hold)
        return self._said

    def _step(self, resource: Object, facts: Facts, seen: Observed, hold: str) -> str:
        step = rolling.retreat(facts)
        if step.action == "none":
            scene = _scene(facts, seen, hold)
            if any(scene.outdated(one) for one in scene.sets if one.component == "adapter"):
                leading = (told.name for told in observe.ask_adapters(seen.pods) if _leads(told))
                scene = replace(scene, leading=frozenset(leading))
            if rolling.needs_brokers(scene):
                told = self._ask_brokers(facts, seen)
                if told is None:
                    return self._said or rolling.decide(scene).message
                scene = replace(scene, brokers=told)
            step = rolling.decide(scene)
        try:
            return self._do(step, resource, facts, seen)
        except ApiException as error:
            return f"{step.message} The API server refuses: {reason(error)}"

    def _ask_brokers(self, facts: Facts, seen: Observed) -> Brokers | None:
        """Return an answer that was asked for a step ago; None: there is none yet.

        It serves one decision: after an eviction, nothing that was true before counts any more.
        """
        if self._asked is None:
            addresses = [pod.address for pod in seen.pods if pod.component == "kafka"]
            known = [address for address in addresses if address]
            self._asked = _ASKING.submit(brokers.look, facts.deployment.bootstrap, known)
        if not self._asked.done():
            return None
        answer, self._asked = self._asked, None
        return answer.result()

    def _do(self, step: Step, resource: Object, facts: Facts, seen: Observed) -> str:
        if step.action == "evict":
            return self._evict(step, resource, seen)
        if step.action == "switch" and self._clock() >= self._due:
            self._due = self._clock() + AGAIN
            return self._switch(step, resource, facts, seen)
        return step.message

    def _evict(self, step: Step, resource: Object, seen: Observed) -> str:
        namespace = resource["metadata"]["namespace"]
        uid = next(pod.uid for pod in seen.pods if pod.name == step.pod)
        try:
            self._cluster.evict(namespace, step.pod, uid)
        except ApiException as error:
            if error.status == _BUSY:
                return f"{step.message} Its disruption budget does not allow that now."
            if error.status not in _GONE:
                raise
        else:
            _LOG.info("%s/%s: %s", namespace, resource["metadata"]["name"], step.message)
        return step.message

    def _switch(self, step: Step, resource: Object, facts: Facts, seen: Observed) -> str:
        address = next((pod.address for pod in seen.pods if pod.name == step.pod), "")
        if not address:
            return step.message
        told = event(resource, "HandingOver", step.message, good=True, now=datetime.now(UTC))
        self._cluster.create(told)
        answer = switchover.ask(address, step.to, self._token(facts.deployment))
        return f"{step.message} {answer.message}".strip()


def _leads(told: ReplicaStatus) -> bool:
    return told.state is EngineState.ACTIVE


def _scene(facts: Facts, seen: Observed, hold: str) -> Scene:
    components = {pod.set: pod.component for pod in seen.pods}
    sets = tuple(
        RollSet(name, components[name], one.wanted, one.revision)
        for name, one in seen.sets.items()
        if name in components
    )
    pods = tuple(
        RollPod(
            name=pod.name,
            set=pod.set,
            revision=pod.revision,
            ready=pod.ready,
            leaving=pod.leaving,
            trouble=pod.trouble,
            unready_s=pod.unready_s,
        )
        for pod in seen.pods
    )
    return Scene(sets, pods, facts.engines, seen.modes, hold=hold)
