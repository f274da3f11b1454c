"""Who writes which order log on Kafka servers that several deployments share."""

import threading
from dataclasses import dataclass

from espha_operator.api.deployment import Deployment


@dataclass(frozen=True, order=True)
class Claim:
    """One deployment's claim; the smaller one came first."""

    created: str
    uid: str
    which: str
    servers: frozenset[str]
    prefix: str

    def meets(self, other: "Claim") -> bool:
        """Whether both write the same order log, as far as names of servers tell."""
        same = self.prefix == other.prefix and bool(self.servers & other.servers)
        return same and self.uid != other.uid


class OrderLogs:
    """The claims of all deployments that this operator has seen.

    The engines of both would fence each other for ever: the prefix of the topics is also their
    transactional id, and each deployment elects an active engine of its own.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._lock = threading.Lock()
        self._known: dict[str, Claim] = {}

    def first(self, deployment: Deployment, created: str, prefix: str) -> str:
        """Claim an order log; return the deployment that came first, or nothing.

        Args:
            deployment: that claims it. One with servers of its own meets nobody.
            created: when its resource was made, as Kubernetes says it.
            prefix: of its topics.
        """
        external = deployment.spec.kafka.external
        if external is None:
            self.drop(deployment.uid)
            return ""
        servers = frozenset(one.strip().lower() for one in external.bootstrap_servers)
        which = f"{deployment.namespace}/{deployment.name}"
        mine = Claim(created, deployment.uid, which, servers, prefix)
        with self._lock:
            self._known[deployment.uid] = mine
            others = [one for one in self._known.values() if one.meets(mine) and one < mine]
        return min(others).which if others else ""

    def drop(self, uid: str) -> None:
        """Forget a deployment's claim."""
        with self._lock:
            self._known.pop(uid, None)
