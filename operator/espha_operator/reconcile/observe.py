"""Looking at what runs: StatefulSets, pods, and what the pods themselves say.

A model's Python runs in the pods that are asked. So nothing that one of them says, or how slowly
it says it, may harm more than its own deployment.
"""

import socket
import time
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from espha.protocol.http import NoAnswerError, ask_status, at
from espha.protocol.status import ReplicaStatus
from espha_operator.api.deployment import Deployment
from espha_operator.api.names import APPLIED, HTTP_PORT, ROLE_LABEL, ZOOKEEPER_PORT
from espha_operator.reconcile.cluster import Cluster
from espha_operator.reconcile.timely import receive
from espha_operator.resources.meta import Object
from espha_operator.status.facts import SetFacts

# Seconds in which a pod's whole answer must be there; a frozen one must not hold up the others.
ANSWER = 0.7
# Bytes of an answer: an engine's status has some thousand, that of a ZooKeeper server some hundred.
LARGEST_STATUS, LARGEST_SRVR = 1 << 16, 1 << 12
# Characters of a sentence that a pod says; it becomes part of the resource's status.
SENTENCE = 500
SENTENCES = ("message", "diverged", "held_topic", "last_error")
# Why a container waits that will run soon.
_STARTS = ("", "ContainerCreating", "PodInitializing")
Found = TypeVar("Found")
# Pods of one deployment that are asked at the same time, and of all of them together: so a
# deployment with dead pods keeps only its own share of the threads waiting.
SHARE, ALL = 4, 64
_POLLERS = ThreadPoolExecutor(max_workers=ALL, thread_name_prefix="poll")


@dataclass(frozen=True)
class Pod:
    """A pod, as far as the operator looks at it."""

    name: str
    component: str
    address: str
    role: str | None
    uid: str = ""
    set: str = ""
    """The StatefulSet that it belongs to."""
    revision: str = ""
    """That of the template of which it was made."""
    ready: bool = False
    leaving: bool = False
    trouble: str = ""
    """Why its container cannot run, as Kubernetes calls it; empty: it runs or starts."""
    unready_s: float = 0.0
    image: str = ""
    made: str = ""
    """When, as Kubernetes writes times."""


@dataclass(frozen=True)
class Observed:
    """What runs."""

    sets: dict[str, SetFacts]
    pods: tuple[Pod, ...]
    engines: tuple[ReplicaStatus, ...]
    modes: Mapping[str, str]
    """What the ZooKeeper servers that serve are (`leader`, …), by pod."""
    services: frozenset[str] = frozenset()
    """Names of the deployment's Services."""

    @property
    def serving(self) -> int:
        """Number of ZooKeeper servers that serve."""
        return len(self.modes)


def selector(deployment: Deployment) -> str:
    """Label selector of everything that belongs to a deployment."""
    return (
        f"app.kubernetes.io/instance={deployment.name},app.kubernetes.io/managed-by=espha-operator"
    )


def observe(
    cluster: Cluster, deployment: Deployment, known: Container[str] = frozenset()
) -> Observed:
    """Observe what runs of a deployment now.

    Args:
        cluster: where it runs.
        deployment: what to look for.
        known: uids of pods that were its own before. They still are while nobody owns them: their
            set is made anew, for larger volumes.
    """
    where, which = deployment.namespace, selector(deployment)
    ours, services = (
        [one for one in cluster.list(kind, where, which) if deployment.uid in owners(one)]
        for kind in ("StatefulSet", "Service")
    )
    made_by = {one["metadata"]["uid"] for one in ours}
    # Labels can be put on any pod; only the API server's own controller can be such an owner.
    pods = tuple(
        _pod(one)
        for one in cluster.list("Pod", where, which)
        if (owners(one) & made_by if owners(one) else one["metadata"].get("uid") in known)
    )
    return Observed(
        sets={one["metadata"]["name"]: _set(one) for one in ours},
        pods=pods,
        engines=tuple(told for _, told in _ask(pods, "engine", ask_engine) if told),
        modes={name: mode for name, mode in _ask(pods, "zookeeper", ask_zookeeper) if mode},
        services=frozenset(one["metadata"]["name"] for one in services),
    )


def ask_adapters(pods: Iterable[Pod]) -> list[ReplicaStatus]:
    """Return what the supervisors of adapters say; those that do not answer are left out."""
    return [told for _, told in _ask(pods, "adapter", ask_engine) if told]


def ask_engine(pod: Pod) -> ReplicaStatus | None:
    """Return what an engine's supervisor says; None when it does not answer.

    An answer under another name comes from a pod that has this one's address by now.
    """
    try:
        status = ask_status(at(pod.address, HTTP_PORT), ANSWER, LARGEST_STATUS)
    except NoAnswerError:
        return None
    if status.name != pod.name:
        return None
    short = {key: getattr(status, key)[:SENTENCE] for key in SENTENCES}
    if status.adapter:
        place = {"position": status.adapter.position[:SENTENCE]}
        short["progress"] = status.adapter.model_copy(update=place)
    return status.model_copy(update=short)


def ask_zookeeper(pod: Pod) -> str:
    """Return the mode of a ZooKeeper server that takes part in a quorum, as `srvr` names it.

    It is `leader`, `follower` or `standalone`; empty: the server does not serve.
    """
    lines = four_letters(pod.address, "srvr", ANSWER).splitlines()
    return next((line[6:].strip() for line in lines if line.startswith("Mode: ")), "")


def four_letters(address: str, word: str, answer_s: float) -> str:
    """Return what a ZooKeeper server says to a four-letter word in time; empty: nothing."""
    try:
        with socket.create_connection((address, ZOOKEEPER_PORT), timeout=answer_s) as connection:
            connection.sendall(word.encode())
            return whole(connection, time.monotonic() + answer_s).decode(errors="replace")
    except OSError:
        return ""


def whole(connection: socket.socket, until: float) -> bytes:
    """Return an answer up to its end; raises OSError when it is too late or too long."""
    answer = b""
    while part := receive(connection, LARGEST_SRVR, until):
        answer += part
        if len(answer) > LARGEST_SRVR:
            raise OSError("the answer is too long")
    return answer


def owners(one: Object) -> set[str]:
    """Return the uids of an object's owners."""
    return {owner["uid"] for owner in one["metadata"].get("ownerReferences") or []}


def _ask(
    pods: Iterable[Pod], component: str, ask: Callable[[Pod], Found]
) -> list[tuple[str, Found]]:
    asked = [pod for pod in pods if pod.component == component and pod.address]
    found: list[Found] = []
    for start in range(0, len(asked), SHARE):
        found += _POLLERS.map(ask, asked[start : start + SHARE])
    return [(pod.name, answer) for pod, answer in zip(asked, found, strict=True)]


def _set(one: Object) -> SetFacts:
    status = one.get("status") or {}
    # Numbers of an older generation say nothing about the pods that are wanted now.
    current = status.get("observedGeneration", 0) >= one["metadata"]["generation"]
    exist = status.get("replicas", 0)
    return SetFacts(
        wanted=one["spec"]["replicas"],
        exist=exist,
        ready=status.get("readyReplicas", 0) if current else 0,
        revision=status.get("updateRevision", "") if current else "",
        behind=exist - status.get("updatedReplicas", 0) if current else exist,
        applied=(one["metadata"].get("annotations") or {}).get(APPLIED, ""),
        image=one["spec"]["template"]["spec"]["containers"][0]["image"],
        rolls_itself=(one["spec"].get("updateStrategy") or {}).get("type") == "RollingUpdate",
    )


def _pod(one: Object) -> Pod:
    labels = one["metadata"].get("labels") or {}
    leaving = "deletionTimestamp" in one["metadata"]
    ready, unready_s = _readiness(one)
    status = one.get("status") or {}
    asked = status.get("phase") == "Running" and not leaving
    return Pod(
        name=one["metadata"]["name"],
        component=labels.get("app.kubernetes.io/component", ""),
        address=(status.get("podIP") or "") if asked else "",
        role=labels.get(ROLE_LABEL),
        uid=one["metadata"].get("uid", ""),
        set=one["metadata"]["name"].rpartition("-")[0],
        revision=labels.get("controller-revision-hash", ""),
        ready=ready,
        leaving=leaving,
        trouble=_trouble(one),
        unready_s=unready_s,
        image=next((of["image"] for of in (one.get("spec") or {}).get("containers", ())), ""),
        made=one["metadata"].get("creationTimestamp") or "",
    )


def _readiness(one: Object) -> tuple[bool, float]:
    """Return whether a pod is ready, and if not, for how many seconds."""
    listed = (one.get("status") or {}).get("conditions") or []
    told: Object = next((each for each in listed if each["type"] == "Ready"), {})
    if told.get("status") == "True":
        return True, 0.0
    since = told.get("lastTransitionTime") or one["metadata"].get("creationTimestamp")
    if since is None:
        return False, 0.0
    return False, (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()


def _trouble(one: Object) -> str:
    for container in (one.get("status") or {}).get("containerStatuses") or []:
        reason = ((container.get("state") or {}).get("waiting") or {}).get("reason", "")
        if reason not in _STARTS:
            return str(reason)
    return ""
