"""What users ask for in annotations of a deployment, and how the operator answers there."""

from espha_operator.api import KIND
from espha_operator.reconcile.cluster import Cluster
from espha_operator.resources.meta import Object


def requested(resource: Object, key: str) -> str | None:
    """Return the request in a resource's annotation; None: there is none."""
    found = (resource["metadata"].get("annotations") or {}).get(key)
    return None if found is None else str(found)


def annotate(cluster: Cluster, resource: Object, key: str, value: str | None) -> None:
    """Set an annotation, or remove it, unless somebody has changed the resource meanwhile."""
    # With the version that was read: a request that somebody has changed meanwhile must stay.
    meta = resource["metadata"]
    change = {"resourceVersion": meta.get("resourceVersion"), "annotations": {key: value}}
    cluster.patch(KIND, meta["namespace"], meta["name"], {"metadata": change})
