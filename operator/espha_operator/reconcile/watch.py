"""Watches: they keep the store as the API server has it, at the price of one connection each.

kopf cannot ask the API server for labelled objects only, and would hold every pod and ConfigMap of
the cluster; the informer of the Kubernetes client tries again without a pause when it is refused.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import urllib3
from kubernetes.client.exceptions import ApiException

from espha_operator.reconcile.pauses import Pauses
from espha_operator.reconcile.store import Store
from espha_operator.resources.meta import Object

# What the operator makes, and the pods and volumes that come of it.
WATCHED = (
    "ConfigMap",
    "Service",
    "PodDisruptionBudget",
    "StatefulSet",
    "Pod",
    "PersistentVolumeClaim",
)
SELECTOR = "app.kubernetes.io/managed-by=espha-operator"
# Seconds after which the API server ends a watch; it is then made again where it ended.
LIFE = 300
# Seconds between two tries after a failure: at first, and at most.
FIRST, LONGEST = 1.0, 60.0
_GONE = 410
_LOG = logging.getLogger(__name__)


class Source(Protocol):
    """Where objects are listed and watched."""

    def list_all(self, kind: str, namespace: str, selector: str) -> tuple[list[Object], str]:
        """Return all objects of a namespace (empty: of all), and the version of the list."""

    def events(
        self, kind: str, namespace: str, selector: str, version: str, life: int
    ) -> Iterator[Object]:
        """Yield what happens to them after a version, for some seconds."""


class Watch:
    """Keeps one kind of objects in the store."""

    def __init__(self, source: Source, store: Store, kind: str, namespace: str = "") -> None:
        """Prepare; nothing is asked before `start`."""
        self._source, self._store, self._kind, self._namespace = source, store, kind, namespace
        self.listed = threading.Event()
        """Set when all that exists has come once."""
        self._version = ""
        self._stopped = threading.Event()

    def start(self) -> None:
        """Keep on until the process ends."""
        where = self._namespace or "all namespaces"
        name = f"watch {self._kind} {where}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def stop(self) -> None:
        """End with the next event."""
        self._stopped.set()

    def _run(self) -> None:
        pauses = Pauses(FIRST, LONGEST)
        while not self._stopped.is_set():
            try:
                self.turn()
            except Exception as error:  # a watch that ends would leave the operator blind
                _LOG.warning("watch of %s: %s", self._kind, _said(error))
                self._stopped.wait(pauses.after(went_well=False))
            else:
                # Also then: the API server might end each watch at once.
                self._stopped.wait(pauses.after(went_well=True))

    def turn(self) -> None:
        """List when it is needed, and watch until the API server ends it."""
        if not self._version:
            found, self._version = self._source.list_all(self._kind, self._namespace, SELECTOR)
            self._store.replace(self._kind, self._namespace, found)
            self.listed.set()
        for event in self._source.events(
            self._kind, self._namespace, SELECTOR, self._version, LIFE
        ):
            if not self._take(event["type"], event["object"]) or self._stopped.is_set():
                return

    def _take(self, what: str, one: Object) -> bool:
        if what == "ERROR":
            self._version = ""  # mostly: too old to go on from
            if one.get("code") != _GONE:
                raise WatchError(str(one.get("message", one)))
            return False
        self._version = one["metadata"]["resourceVersion"]
        if what == "DELETED":
            self._store.remove(self._kind, one)
        elif what != "BOOKMARK":
            self._store.put(self._kind, one)
        return True


class WatchError(Exception):
    """The API server has ended a watch with an error."""


def await_listed(watches: list[Watch], timeout: float, said: Callable[[str], None]) -> None:
    """Wait until all of them have listed what exists; say so when that takes long."""
    until = time.monotonic() + timeout
    for one in watches:
        while not one.listed.wait(max(0.1, until - time.monotonic())):
            said("still waiting for the API server's first answer")
            until = time.monotonic() + timeout


def _said(error: Exception) -> str:
    if isinstance(error, ApiException):
        return f"{error.status} {error.reason}"
    if isinstance(error, urllib3.exceptions.HTTPError | OSError):
        return f"the API server does not answer: {error}"
    return f"{type(error).__name__}: {error}"
