"""Labels and owners that all objects have."""

import hashlib
from typing import Any

from espha_operator.api import GROUP, KIND, VERSION
from espha_operator.api.deployment import Deployment

Object = dict[str, Any]
TOKEN_KEY = "token"  # noqa: S105 - the name of a key


def labels(deployment: Deployment, component: str) -> dict[str, str]:
    """Return the labels of an object; the same ones select its pods."""
    return {
        "app.kubernetes.io/name": "espha",
        "app.kubernetes.io/instance": deployment.name,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "espha-operator",
    }


def metadata(deployment: Deployment, name: str, component: str) -> Object:
    """Return metadata of an object that goes when its deployment goes."""
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "name": deployment.name,
        "uid": deployment.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": deployment.namespace,
        "labels": labels(deployment, component),
        "ownerReferences": [owner],
    }


def checksum(*texts: str) -> str:
    """Return a short fingerprint; pods carry their configuration's, so a change restarts them."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def token_name(deployment: Deployment) -> str:
    """Return the name of the Secret with the token: one that no other Secret can have by chance."""
    return f"{deployment.name}-espha-token-{checksum(deployment.uid)[:8]}"


def token(deployment: Deployment, value: str) -> Object:
    """Return the Secret with what must be shown to an engine for a switchover."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(deployment, token_name(deployment), "engine"),
        "stringData": {TOKEN_KEY: value},
    }
