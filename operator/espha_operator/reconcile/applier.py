"""Bringing wanted objects to the API server, without asking it for the same thing every second."""

import json
from collections.abc import Callable, Collection

from kubernetes.client.exceptions import ApiException

from espha_operator.api.deployment import Deployment
from espha_operator.reconcile.cluster import MADE, Cluster, reason
from espha_operator.reconcile.observe import selector
from espha_operator.resources.meta import Object, checksum

# Seconds after which everything is applied again, to undo what others have changed or deleted.
AGAIN = 15.0


class Applier:
    """Applies what has changed at once, and everything from time to time."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        """Start with everything to be applied."""
        self._cluster, self._clock = cluster, clock
        self._applied = ""
        self._due = 0.0

    def apply(
        self, deployment: Deployment, wanted: list[Object], kept: Collection[str] = ()
    ) -> str:
        """Apply wanted objects, and delete the deployment's others, unless their names are kept.

        Returns:
            What the API server refuses, as a sentence; empty when it takes everything.
        """
        fingerprint = checksum(json.dumps(wanted, sort_keys=True))
        if fingerprint == self._applied and self._clock() < self._due:
            return ""
        for thing in wanted:
            try:
                self._cluster.apply(thing)
            except ApiException as error:
                return f"{thing['kind']} {thing['metadata']['name']}: {reason(error)}"
        self._prune(deployment, wanted, kept)
        self._applied, self._due = fingerprint, self._clock() + AGAIN
        return ""

    def _prune(self, deployment: Deployment, wanted: list[Object], kept: Collection[str]) -> None:
        keep = {(thing["kind"], thing["metadata"]["name"]) for thing in wanted}
        for kind in MADE:
            for thing in self._cluster.list(kind, deployment.namespace, selector(deployment)):
                name = thing["metadata"]["name"]
                if (kind, name) not in keep and name not in kept and _owned(thing, deployment.uid):
                    self._cluster.delete(kind, deployment.namespace, name)


def _owned(thing: Object, uid: str) -> bool:
    return any(one["uid"] == uid for one in thing["metadata"].get("ownerReferences") or [])
