"""Namespaces that tests make, and patience with what becomes ready in them."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.servers import wait_until
from tools import clean
from tools.offline_cluster import clients

PATIENCE_MS = 4000
"""Of a session: an engine that gets no processor time for a second is not dead."""
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
"""Label of a namespace: Kubernetes itself refuses pods there that are not restricted."""
QUIET_S = 300
"""So long (s) nothing may move in a namespace before a wait is given up."""


def create(name: str, *labels: str) -> None:
    """Make a namespace that `make demo-clean` deletes where a test was killed."""
    clients.kubectl("create", "namespace", name)
    clients.kubectl("label", "namespace", name, f"{clean.TEST}=yes", *labels)


@contextmanager
def made(prefix: str, *labels: str) -> Iterator[str]:
    """Make a namespace, and delete it in the end."""
    name = f"{prefix}-{uuid.uuid4().hex[:6]}"
    create(name, *labels)
    yield name
    clients.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def conditions(namespace: str, name: str) -> dict[str, dict[str, str]]:
    """Return the conditions of a deployment by their types."""
    found = json.loads(clients.kubectl("-n", namespace, "get", "espha", name, "-o", "json"))
    return {one["type"]: one for one in found.get("status", {}).get("conditions", [])}


def wait_for(namespace: str, condition: str, name: str) -> None:
    """Wait for a condition of a deployment, as long as its status or its pods move.

    Args:
        namespace: where it is.
        condition: its type, or `type=status`; a type alone is to be true.
        name: of the deployment.
    """
    kind, _, wanted = condition.partition("=")

    def holds() -> bool:
        seen = conditions(namespace, name).get(kind, {}).get("status", "")
        return seen.lower() == (wanted or "true").lower()

    wait_until(holds, QUIET_S, f"{condition} of {name}", 1.0, lambda: _moved(namespace, name))


def _moved(namespace: str, name: str) -> object:
    listed = json.loads(clients.kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
    return conditions(namespace, name), [_state(pod) for pod in listed]


def _state(pod: dict[str, Any]) -> object:
    status = pod["status"]
    held = [(one["type"], one["status"]) for one in status.get("conditions", [])]
    return pod["metadata"]["name"], pod["metadata"]["uid"], status.get("phase"), held
