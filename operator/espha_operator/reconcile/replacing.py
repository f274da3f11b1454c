"""Following a request to replace a pod, with its volume: for a dead node, or a bad disk."""

import logging
from datetime import UTC, datetime

from kubernetes.client.exceptions import ApiException

from espha_operator.api.names import REPLACE
from espha_operator.reconcile.annotations import annotate
from espha_operator.reconcile.cluster import Cluster, reason
from espha_operator.reconcile.growth import CLAIM
from espha_operator.resources.events import event
from espha_operator.resources.meta import Object
from espha_operator.status.replacing import Replacement

# Seconds behind its time after which a pod's node counts as dead: it would have ended the pod.
DEAD = 30.0
_LOG = logging.getLogger(__name__)


def follow(cluster: Cluster, resource: Object, pod: Object | None, next_: Replacement) -> None:
    """Bring a request one step further; it stays until it is fulfilled or refused."""
    try:
        _follow(cluster, resource, pod, next_)
    except ApiException as error:
        _LOG.warning("replacing %s: %s", next_.pod, reason(error))


def _follow(cluster: Cluster, resource: Object, pod: Object | None, next_: Replacement) -> None:
    namespace = resource["metadata"]["namespace"]
    if next_.action == "name":
        annotate(cluster, resource, REPLACE, next_.value)
        _tell(cluster, resource, "Replacing", next_.message, good=True)
    elif next_.action == "delete":
        if next_.claim:
            # It stays until no pod uses it, and until then no other pod takes its place.
            uid = next_.value.rpartition("@")[2]
            cluster.delete(CLAIM, namespace, next_.claim, uid=uid)
        if pod is not None:
            _end(cluster, resource, pod)
    else:
        annotate(cluster, resource, REPLACE, None)
        good = next_.action == "done"
        _tell(cluster, resource, "Replaced" if good else "ReplaceRefused", next_.message, good=good)


def _end(cluster: Cluster, resource: Object, pod: Object) -> None:
    """Delete a pod; without waiting for its node's word, when that one is overdue."""
    meta = pod["metadata"]
    leaving = meta.get("deletionTimestamp")
    if leaving is None:
        cluster.delete("Pod", meta["namespace"], meta["name"], uid=meta["uid"])
    elif (datetime.now(UTC) - datetime.fromisoformat(leaving)).total_seconds() > DEAD:
        _LOG.warning("%s: its node does not answer; it is deleted by force", meta["name"])
        cluster.delete("Pod", meta["namespace"], meta["name"], uid=meta["uid"], grace=0)


def _tell(cluster: Cluster, resource: Object, why: str, text: str, *, good: bool) -> None:
    cluster.create(event(resource, why, text, good=good, now=datetime.now(UTC)))
