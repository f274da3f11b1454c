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
from espha_operator.api.names import KAFKA_PORT
from espha_operator.reconcile import brokers, observe, rolling, switchover
from espha_operator.reconcile.cluster import Cluster, reason
from espha_operator.reconcile.observe import Observed
from espha_operator.reconcile.rolling import Brokers, RollPod, RollSet, Scene, Step
from espha_operator.resources.events import event
from espha_operator.resources.meta import Object
from espha_operator.status.facts import Facts

# Seconds between two requests to the active engine to hand over: each one costs a pause of output.
AGAIN = 10.0
# Seconds before a Kafka that does not answer is asked again: each question takes some threads.
SILENT = 10.0
# Seconds: an answer that was asked for so long ago says nothing of now; most take less than one.
FRESH = 15.0
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
        self._asked: Future[tuple[float, Brokers]] | None = None
        self._ask_due = 0.0
        self._told: Brokers | None = None
        self._whole = False
        self._said = ""

    def guarded(self, facts: Facts, seen: Observed) -> frozenset[str]:
        """Return the components of which nobody may evict a pod that is ready.

        A server's port is open, and its pod ready, before it has caught up. So after each absence
        of one a budget stays closed until all servers say that nothing is missing: a second drain
        would else take the next one from a quorum, or from the copies that a commit needs.
        """
        self._told = None
        found = set()
        keepers, servers = facts.set("zookeeper"), facts.set("kafka")
        if keepers.wanted and min(keepers.ready, seen.serving) < keepers.wanted:
            found.add("zookeeper")
        if servers.wanted and not self._all_copies(facts, seen):
            found.add("kafka")
        return frozenset(found)

    def _all_copies(self, facts: Facts, seen: Observed) -> bool:
        wanted, topics = facts.set("kafka").wanted, facts.topics
        if facts.set("kafka").ready < wanted or (
            topics and (topics.under_replicated or topics.brokers < wanted)
        ):
            self._whole = False
        if facts.set("kafka").ready >= wanted and not self._whole:
            self._told = self._ask_brokers(facts, seen)
            self._whole = self._told is not None and self._told.whole(wanted)
        return self._whole

    def step(self, resource: Object, facts: Facts, seen: Observed) -> str:
        """Do what is next.

        Args:
            resource: the deployment as read.
            facts: what runs.
            seen: the same, with its pods.

        Returns:
            What is done or waited for, as a sentence; empty when all is up to date.
        """
        self._said = self._step(resource, facts, seen)
        return self._said

    def _step(self, resource: Object, facts: Facts, seen: Observed) -> str:
        step = rolling.retreat(facts)
        if step.action == "wait":
            step = rolling.mend(_scene(facts, seen), step)
        if step.action == "none":
            scene = _scene(facts, seen)
            if any(scene.outdated(one) for one in scene.sets if one.component == "adapter"):
                leading = (told.name for told in observe.ask_adapters(seen.pods) if _leads(told))
                scene = replace(scene, leading=frozenset(leading))
            if rolling.needs_brokers(scene):
                told, self._told = self._told or self._ask_brokers(facts, seen), None
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

        It serves one decision: after an eviction, nothing that was true before counts any more. And
        nothing that was true a roll-out ago.
        """
        if self._asked and self._asked.done() and self._clock() - self._asked.result()[0] > FRESH:
            self._asked = None
        if self._asked is None:
            if self._clock() < self._ask_due:
                return None
            addresses = [pod.address for pod in seen.pods if pod.component == "kafka"]
            known = [(address, KAFKA_PORT) for address in addresses if address]
            self._asked = submit(self._look, facts.deployment.bootstrap, known)
        if not self._asked.done():
            return None
        (_, told), self._asked = self._asked.result(), None
        if told.error:
            self._ask_due = self._clock() + SILENT
        return told

    def _look(self, bootstrap: str, addresses: list[tuple[str, int]]) -> tuple[float, Brokers]:
        """Return when the brokers were asked, and what they said."""
        return self._clock(), brokers.look(bootstrap, addresses)

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
        if answer.locked:  # it learns the new token by this, and hands over by itself
            why = f"{step.message} It knows another token, and its pod is made anew."
            return self._evict(replace(step, message=why), resource, seen)
        return f"{step.message} {answer.message}".strip()


def _component(name: str, facts: Facts) -> str:
    suffix = name.removeprefix(f"{facts.deployment.name}-")
    return suffix if suffix in rolling.ORDER else "adapter"


def submit(
    look: Callable[[str, list[tuple[str, int]]], tuple[float, Brokers]],
    bootstrap: str,
    addresses: list[tuple[str, int]],
) -> Future[tuple[float, Brokers]]:
    """Look in another thread."""
    return _ASKING.submit(look, bootstrap, addresses)


def _leads(told: ReplicaStatus) -> bool:
    return told.state is EngineState.ACTIVE


def _scene(facts: Facts, seen: Observed) -> Scene:
    sets = tuple(
        RollSet(name, _component(name, facts), one.wanted, one.revision)
        for name, one in seen.sets.items()
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
            stale=bool(facts.disks and pod.uid in facts.disks.waiting),
        )
        for pod in seen.pods
    )
    return Scene(sets, pods, facts.engines, seen.modes)
