"""What a request to replace a pod, and its volume if it has one, comes to. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from espha_operator.status.facts import Facts
from espha_operator.status.storage import Claim

_PARTS = {"kafka": "data", "zookeeper": "data", "engine": "snapshots"}
_ADAPTER = "adapter"
_UID = "@"


@dataclass(frozen=True)
class Others:
    """What the others hold, looked at just now.

    Attributes:
        error: why Kafka could not be asked; empty: it could.
        absent: brokers that lack in the copies in sync of a partition.
        serving: pods of ZooKeeper servers that take part in the quorum.
    """

    error: str = ""
    absent: Collection[int] = frozenset()
    serving: Collection[str] = frozenset()


@dataclass(frozen=True)
class Replacement:
    """The next thing to do about a request.

    Attributes:
        action: name in the request what goes; delete claim and pod; or the request is done or
            refused, and goes.
        value: the request as it goes on, `POD@UID`.
        pod: to be replaced.
        claim: its volume's; empty: it has none of its own.
        message: what happens or has happened, for people; empty while it goes on.
    """

    action: Literal["name", "delete", "done", "refused"]
    value: str = ""
    pod: str = ""
    claim: str = ""
    message: str = ""


def decide(
    request: str,
    facts: Facts,
    claims: Iterable[Claim],
    others: Others,
    pods: Mapping[str, str],
) -> Replacement:
    """Decide what to do about a request: the name of a pod, or `POD@UID` once it has begun.

    1. It begins only when the others have all that this one has.
    2. The request then names the volume by its uid. So it is never the next volume that goes when
       the operator is restarted in the middle.
    3. It is done when that volume has gone: another one takes its place, and is filled by others.
    4. A pod of an adapter has no volume of its own: it goes alone, and the uid is the pod's.

    Args:
        request: value of the annotation.
        facts: what runs.
        claims: of the deployment.
        others: what the others hold.
        pods: uids of the deployment's pods, by name.
    """
    pod, _, uid = request.partition(_UID)
    component, ordinal = _part(facts, pod)
    if not component:
        return Replacement("refused", pod=pod, message=_unknown(facts, pod))
    if component == _ADAPTER:
        return _adapter(request, pod, uid, pods.get(pod, ""))
    name = f"{_PARTS[component]}-{pod}"
    claim = next((one for one in claims if one.name == name), None)
    if uid:
        if claim is None or claim.uid != uid:
            text = f"{pod} has a new volume, and is rebuilt from what the others hold."
            return Replacement("done", pod=pod, message=text)
        return Replacement("delete", request, pod, name)
    if claim is None:
        return Replacement("refused", pod=pod, message=f"{pod} has no volume {name}.")
    missing = _missing(component, ordinal, pod, facts, others)
    if missing:
        return Replacement("refused", pod=pod, message=f"{pod} is not replaced: {missing}")
    text = f"{pod} and its volume are deleted, to be rebuilt from what the others hold."
    return Replacement("name", f"{pod}{_UID}{claim.uid}", pod, name, text)


def _adapter(request: str, pod: str, uid: str, there: str) -> Replacement:
    """Decide about a pod of an adapter; `uid` is the one in the request, `there` that of the pod.

    What it has done is on the topics, and nobody but Kubernetes keeps another from its place.
    """
    if uid and there != uid:
        return Replacement("done", pod=pod, message=f"{pod} is made anew.")
    if uid:
        return Replacement("delete", request, pod)
    if not there:
        return Replacement("refused", pod=pod, message=f"There is no pod {pod} now.")
    text = f"{pod} is deleted, to be made anew."
    return Replacement("name", f"{pod}{_UID}{there}", pod, message=text)


def _part(facts: Facts, pod: str) -> tuple[str, int]:
    spec = facts.deployment.spec
    counts = {"engine": spec.engines.replicas}
    if not spec.kafka.external:
        counts["kafka"] = spec.kafka.replicas
    if not spec.zookeeper.external:
        counts["zookeeper"] = spec.zookeeper.replicas
    parts = {name: (name, count) for name, count in counts.items()}
    parts |= {one.label: (_ADAPTER, one.pods) for one in spec.adapters.every}
    for suffix, (component, count) in parts.items():
        start, _, number = pod.rpartition("-")
        if start == f"{facts.deployment.name}-{suffix}" and number.isdecimal():
            return (component, int(number)) if int(number) < count else ("", -1)
    return "", -1


def _unknown(facts: Facts, pod: str) -> str:
    name = facts.deployment.name
    return (
        f'"{pod}" is no pod of this deployment; possible are: {name}-kafka-N, {name}-zookeeper-N, '
        f"{name}-engine-N and pods of adapters, as far as the operator runs them."
    )


def _missing(component: str, ordinal: int, pod: str, facts: Facts, others: Others) -> str:
    """Return what the others lack, as the end of a sentence; empty: nothing."""
    spec = facts.deployment.spec
    if component == "kafka":
        return _broker(ordinal, spec.kafka.replicas, others)
    if component == "zookeeper":
        left = [one for one in others.serving if one != pod]
        if len(left) * 2 <= spec.zookeeper.replicas:
            return (
                f"without it {len(left)} of {spec.zookeeper.replicas} ZooKeeper servers serve, "
                "which is no majority."
            )
        return ""
    if not any(one.in_sync and one.name != pod for one in facts.engines):
        return "no other engine is in sync, so nobody would have the state."
    return ""


def _broker(ordinal: int, replicas: int, others: Others) -> str:
    if replicas == 1:
        return "it holds the only copy of the topics."
    if others.error:
        return f"what the other brokers hold is not known: {others.error}"
    lacking = sorted(one for one in others.absent if one != ordinal)
    if lacking:
        listed = ", ".join(map(str, lacking))
        return f"copies on the brokers {listed} are behind or missing."
    return ""
