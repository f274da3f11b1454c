"""What the pods of adapters say: asked in each step where it matters at once, else now and then."""

from collections.abc import Callable, Container, Iterable

from espha.protocol.status import ReplicaStatus
from espha_operator.api.deployment import Deployment
from espha_operator.reconcile import observe
from espha_operator.reconcile.observe import Pod

# Seconds between two looks at adapters whose Service leads nowhere.
AGAIN = 10.0


class AdapterView:
    """Asks a deployment's adapters, and remembers what they have said."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Nobody was asked."""
        self._clock = clock
        self._due = clock()
        self._said: dict[str, tuple[str, ReplicaStatus]] = {}

    def look(self, deployment: Deployment, pods: Iterable[Pod]) -> tuple[ReplicaStatus, ...]:
        """Return what each pod has said last, of those that answered when they were asked last."""
        there = {pod.name: pod for pod in pods if pod.component == "adapter" and pod.address}
        all_of_them = self._clock() >= self._due
        if all_of_them:
            self._due = self._clock() + AGAIN
        urgent = _elected(deployment)
        asked = [
            pod
            for pod in there.values()
            if all_of_them or pod.set in urgent or not self._knows(pod)
        ]
        told = {one.name: one for one in observe.ask_adapters(asked)}
        kept = {name: one for name, one in self._said.items() if _same(one[0], there.get(name))}
        for pod in asked:
            kept.pop(pod.name, None)
            if pod.name in told:
                kept[pod.name] = pod.uid, told[pod.name]
        self._said = kept
        return tuple(one for _, one in sorted(kept.values(), key=lambda one: one[1].name))

    def _knows(self, pod: Pod) -> bool:
        return pod.name in self._said and self._said[pod.name][0] == pod.uid


def _same(uid: str, pod: Pod | None) -> bool:
    return pod is not None and pod.uid == uid


def _elected(deployment: Deployment) -> Container[str]:
    """Return the StatefulSets of pairs to whose active pod a Service leads."""
    every = deployment.spec.adapters.every
    return {f"{deployment.name}-{one.label}" for one in every if one.by_role}
