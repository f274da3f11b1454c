"""Who writes which order log on Kafka servers that several deployments share."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from espha_operator.api.deployment import Deployment
from espha_operator.resources.meta import Object
from espha_operator.status.reasons import Reason

PATIENCE = 30.0
"""Seconds behind its start in which the operator lets those that came first go first."""


@dataclass(frozen=True)
class Claim:
    """One deployment's claim."""

    uid: str
    which: str
    servers: frozenset[str]
    prefix: str

    def meets(self, other: "Claim") -> bool:
        """Whether both write the same order log, as far as names of servers tell."""
        same = self.prefix == other.prefix and bool(self.servers & other.servers)
        return same and self.uid != other.uid


@dataclass(frozen=True, order=True)
class _Turn:
    """When a deployment that was there before the operator has its turn."""

    refused: bool
    created: str
    uid: str


class OrderLogs:
    """The claims of all deployments that this operator has seen.

    The engines of both would fence each other for ever: the prefix of the topics is also their
    transactional id, and each deployment elects an active engine of its own. So whoever has the
    order log keeps it, and another one does nothing. An operator that starts asks those first that
    were not refused, and of these the oldest.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without any."""
        self._clock, self._end = clock, clock() + PATIENCE
        self._lock = threading.Lock()
        self._claims: dict[str, Claim] = {}
        self._turns: dict[str, _Turn] = {}

    def expect(self, resources: Iterable[Object]) -> None:
        """Take in the deployments that are there when the operator starts."""
        turns = [_turn(one) for one in resources]
        with self._lock:
            self._turns.update({one.uid: one for one in turns})

    def must_wait(self, deployment: Deployment) -> bool:
        """Tell whether another one, which may have the same order log, has its turn first."""
        if deployment.spec.kafka.external is None:
            return False
        with self._lock:
            mine = self._turns.get(deployment.uid)
            if mine is None or self._clock() >= self._end:
                return False
            return any(one < mine for one in self._turns.values())

    def seen(self, uid: str) -> None:
        """Note that a deployment has had its turn."""
        with self._lock:
            self._turns.pop(uid, None)

    def claim(self, deployment: Deployment, prefix: str) -> str:
        """Claim an order log; return the deployment that has it, or nothing.

        Args:
            deployment: that claims it. One with servers of its own meets nobody.
            prefix: of its topics.
        """
        external = deployment.spec.kafka.external
        if external is None:
            self.drop(deployment.uid)
            return ""
        servers = frozenset(one.strip().lower() for one in external.bootstrap_servers)
        which = f"{deployment.namespace}/{deployment.name}"
        mine = Claim(deployment.uid, which, servers, prefix)
        with self._lock:
            others = [one.which for one in self._claims.values() if one.meets(mine)]
            if not others:
                self._claims[deployment.uid] = mine
        return min(others, default="")

    def drop(self, uid: str) -> None:
        """Forget a deployment's claim."""
        with self._lock:
            self._claims.pop(uid, None)
            self._turns.pop(uid, None)


def _turn(resource: Object) -> _Turn:
    meta = resource["metadata"]
    conditions = (resource.get("status") or {}).get("conditions") or []
    refused = any(one.get("reason") == Reason.CONFLICT.value for one in conditions)
    return _Turn(refused, meta.get("creationTimestamp", ""), meta["uid"])
