"""Looking at what runs: StatefulSets, pods, and what the pods themselves say."""

import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from espha.protocol.http import NoAnswerError, ask_status, at
from espha.protocol.status import ReplicaStatus
from espha_operator.api.deployment import Deployment
from espha_operator.api.names import HTTP_PORT, ROLE_LABEL, ZOOKEEPER_PORT
from espha_operator.reconcile.cluster import Cluster
from espha_operator.resources.meta import Object
from espha_operator.status.facts import SetFacts

# Seconds that a pod may take to answer; a frozen one must not hold up the others.
ANSWER = 0.7
Found = TypeVar("Found")
# Shared by all deployments: the pods of one are asked at the same time.
_POLLERS = ThreadPoolExecutor(max_workers=16, thread_name_prefix="poll")


@dataclass(frozen=True)
class Pod:
    """A pod, as far as the operator looks at it."""

    name: str
    component: str
    address: str
    role: str | None


@dataclass(frozen=True)
class Observed:
    """What runs."""

    sets: dict[str, SetFacts]
    pods: tuple[Pod, ...]
    engines: tuple[ReplicaStatus, ...]
    serving: int


def selector(deployment: Deployment) -> str:
    """Label selector of everything that belongs to a deployment."""
    return (
        f"app.kubernetes.io/instance={deployment.name},app.kubernetes.io/managed-by=espha-operator"
    )


def observe(cluster: Cluster, deployment: Deployment) -> Observed:
    """Observe what runs of a deployment now."""
    where, which = deployment.namespace, selector(deployment)
    sets = {one["metadata"]["name"]: _set(one) for one in cluster.list("StatefulSet", where, which)}
    pods = tuple(_pod(one) for one in cluster.list("Pod", where, which))
    return Observed(
        sets=sets,
        pods=pods,
        engines=tuple(_ask(pods, "engine", ask_engine)),
        serving=sum(_ask(pods, "zookeeper", ask_zookeeper)),
    )


def ask_engine(pod: Pod) -> ReplicaStatus | None:
    """Return what an engine's supervisor says; None when it does not answer.

    An answer under another name comes from a pod that has this one's address by now.
    """
    try:
        status = ask_status(at(pod.address, HTTP_PORT), ANSWER)
    except NoAnswerError:
        return None
    return status if status.name == pod.name else None


def ask_zookeeper(pod: Pod) -> bool:
    """Whether a ZooKeeper server takes part in a quorum (`srvr` names its mode then)."""
    try:
        with socket.create_connection((pod.address, ZOOKEEPER_PORT), timeout=ANSWER) as connection:
            connection.sendall(b"srvr")
            with connection.makefile("rb") as answer:
                return b"Mode: " in answer.read()
    except OSError:
        return False


def _ask(pods: Iterable[Pod], component: str, ask: Callable[[Pod], Found | None]) -> list[Found]:
    asked = [pod for pod in pods if pod.component == component and pod.address]
    return [answer for answer in _POLLERS.map(ask, asked) if answer is not None]


def _set(one: Object) -> SetFacts:
    status = one.get("status") or {}
    # Numbers of an older generation say nothing about the pods that are wanted now.
    current = status.get("observedGeneration", 0) >= one["metadata"]["generation"]
    return SetFacts(
        wanted=one["spec"]["replicas"],
        exist=status.get("replicas", 0),
        ready=status.get("readyReplicas", 0) if current else 0,
    )


def _pod(one: Object) -> Pod:
    labels = one["metadata"].get("labels") or {}
    leaving = one["metadata"].get("deletionTimestamp")
    return Pod(
        name=one["metadata"]["name"],
        component=labels.get("app.kubernetes.io/component", ""),
        address="" if leaving else (one.get("status") or {}).get("podIP") or "",
        role=labels.get(ROLE_LABEL),
    )
