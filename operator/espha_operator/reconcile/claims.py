"""Volumes that users bring along: how many nodes can mount them."""

from collections.abc import Callable

from espha_operator.api.deployment import Deployment
from espha_operator.reconcile.cluster import Cluster

# A claim keeps its access modes, but another one may come in its place.
_AGAIN = 60.0
_MISSING_AGAIN = 5.0
_MANY = {"ReadWriteMany", "ReadOnlyMany"}


class Claims:
    """Reads the claims of a deployment's adapters, and remembers them for a while."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        """Start with nothing read."""
        self._cluster, self._clock = cluster, clock
        self._seen: dict[str, tuple[bool, float]] = {}

    def shared(self, deployment: Deployment) -> frozenset[str]:
        """Return the claims of adapters' volumes that several nodes can mount at a time.

        One that does not exist yet is none of them.
        """
        adapters = deployment.spec.adapters.every
        names = {one.volume.claim_name for one in adapters if one.volume is not None}
        return frozenset(name for name in names if self._is_shared(deployment.namespace, name))

    def _is_shared(self, namespace: str, name: str) -> bool:
        known, due = self._seen.get(name, (False, 0.0))
        if self._clock() < due:
            return known
        found = self._cluster.get("PersistentVolumeClaim", namespace, name)
        modes = (found or {}).get("spec", {}).get("accessModes") or []
        known = not _MANY.isdisjoint(modes)
        self._seen[name] = known, self._clock() + (_AGAIN if found else _MISSING_AGAIN)
        return known
