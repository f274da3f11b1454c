"""Kubernetes Events: what happened to a deployment, for people."""

import uuid
from datetime import datetime

from espha_operator.api import GROUP, KIND, VERSION
from espha_operator.api.names import FIELD_MANAGER
from espha_operator.resources.meta import Object


def event(resource: Object, reason: str, message: str, *, good: bool, now: datetime) -> Object:
    """Return an Event about a deployment.

    Args:
        resource: the deployment as read.
        reason: one CamelCase word.
        message: a sentence.
        good: False makes it a warning.
        now: when it happened; with a time zone.
    """
    meta = resource["metadata"]
    stamp = now.isoformat(timespec="seconds")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
        },
        "type": "Normal" if good else "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": FIELD_MANAGER},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
