"""The deployments' tokens: derived from one key, so that no Secret of a tenant need be read.

The operator makes a token's Secret and never reads one: it has no right to. Its own key is the only
Secret that it reads, in its own namespace.
"""

import base64
import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from typing import Protocol

from kubernetes.client.exceptions import ApiException

from espha_operator.api.deployment import Deployment
from espha_operator.resources import meta
from espha_operator.resources.meta import Object

NAME = "espha-operator-key"
# Seconds after which a token's Secret is made again, should somebody have deleted it.
AGAIN = 600.0
_EXISTS = 409


class Secrets(Protocol):
    """Where Secrets are kept."""

    def read(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object as it is now."""

    def create(self, wanted: Object) -> None:
        """Make an object that must not exist yet."""


class Tokens:
    """Makes tokens, and their Secrets."""

    def __init__(self, cluster: Secrets, namespace: str) -> None:
        """Read nothing yet; the key is in the operator's own namespace."""
        self._cluster, self._namespace = cluster, namespace
        self._lock = threading.Lock()
        self._key = b""

    def of(self, deployment: Deployment) -> str:
        """Return a deployment's token: always the same, whoever has deleted its Secret."""
        made = hmac.new(self._own_key(), deployment.uid.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(made).decode().rstrip("=")

    def ensure(self, deployment: Deployment) -> None:
        """Make the Secret with a deployment's token, unless there is one.

        Its name is made of the deployment's uid: nobody can have made it beforehand, and no Secret
        of somebody else has it.
        """
        _unless_there(self._cluster.create, meta.token(deployment, self.of(deployment)))

    def _own_key(self) -> bytes:
        with self._lock:
            if not self._key:
                self._key = self._read() or self._make()
            return self._key

    def _read(self) -> bytes:
        found = self._cluster.read("Secret", self._namespace, NAME)
        return base64.b64decode((found or {}).get("data", {}).get(meta.TOKEN_KEY, ""))

    def _make(self) -> bytes:
        made = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": NAME, "namespace": self._namespace},
            "stringData": {meta.TOKEN_KEY: secrets.token_urlsafe(32)},
        }
        _unless_there(self._cluster.create, made)
        key = self._read()  # also when another operator was faster
        if not key:
            raise ValueError(f'the Secret "{NAME}" has no key "{meta.TOKEN_KEY}": delete it')
        return key


def _unless_there(create: Callable[[Object], None], wanted: Object) -> None:
    try:
        create(wanted)
    except ApiException as error:
        if error.status != _EXISTS:
            raise
