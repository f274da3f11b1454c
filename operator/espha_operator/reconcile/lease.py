"""Leases: of several operators, one reconciles a namespace; the others wait and say so.

There is one in each namespace with deployments, so that it does not matter which operator was
installed how: one for all namespaces, and one for this namespace alone, meet in the same lease.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import urllib3
from kubernetes.client.exceptions import ApiException

from espha_operator.api.names import FIELD_MANAGER
from espha_operator.reconcile.cluster import API_VERSIONS, reason
from espha_operator.resources.meta import Object

NAME = "espha-operator"
# Seconds for which a lease holds when nobody renews it.
DURATION = 60
# Seconds between two renewals, and between two looks at somebody else's lease.
RENEW, LOOK = 20.0, 10.0
# Seconds without a renewal after which nothing is written any more. What is on its way then ends
# (cluster.TIMEOUT) before the lease does.
GIVE_UP = 45.0
# It is not as it was, or it has gone.
_ANOTHER = (409, 404)
_LOG = logging.getLogger(__name__)


class Leases(Protocol):
    """Where leases are kept."""

    def read(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object as it is now."""

    def create(self, wanted: Object) -> None:
        """Make an object that must not exist yet."""

    def replace(self, wanted: Object) -> Object:
        """Put an object in the place of the one that has its `resourceVersion`."""


class NotHeldError(Exception):
    """Something was to be written in a namespace that is not this operator's, or not for sure."""


class Lease:
    """The lease of one namespace, seen by one operator. Used by one thread, read by any."""

    def __init__(
        self,
        cluster: Leases,
        namespace: str,
        identity: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Hold nothing yet."""
        self._cluster, self._namespace, self._identity = cluster, namespace, identity
        self._clock = clock
        self._busy = threading.Lock()
        self._mine: Object | None = None
        self.ended = threading.Event()
        """Set when it is wanted no more; it is not taken again then."""
        self._renewed = float("-inf")
        self._seen: tuple[object, float] = (None, 0.0)
        self.holder = ""
        """Who holds it; empty: nobody is known to."""
        self.lost = False
        """Somebody else has taken it from this operator."""

    @property
    def held(self) -> bool:
        """Whether this operator may write."""
        return self._mine is not None and self._clock() < self._renewed + GIVE_UP

    def turn(self) -> None:
        """Renew it, or take it when nobody renews it; raises what the API server says."""
        with self._busy:
            if not self.ended.is_set():
                self._turn()

    def release(self) -> None:
        """Let go of it, so that the next operator need not wait."""
        self.ended.set()
        with self._busy:
            if self._mine is None:
                return
            mine, self._mine = self._mine, None
            gone = self._body(mine, self._transitions(mine))
            gone["spec"]["holderIdentity"] = ""
            self._cluster.replace(gone)

    def _turn(self) -> None:
        # Before asking: that is how long it holds at least.
        asked = self._clock()
        there = self._mine or self._cluster.read("Lease", self._namespace, NAME)
        if there is None:
            self._cluster.create(self._body({}, 0))
            there = self._cluster.read("Lease", self._namespace, NAME) or self._body({}, 0)
        if not self._may_take(there):
            return
        try:
            self._mine = self._cluster.replace(self._body(there, self._transitions(there)))
        except ApiException as error:
            if error.status not in _ANOTHER:
                raise
            self._look_again()
        else:
            self.holder, self._renewed = self._identity, asked

    def _look_again(self) -> None:
        there = self._cluster.read("Lease", self._namespace, NAME)
        if self._mine is not None and there is not None and not self._is_mine(there):
            self.holder = _holder(there)
            self.lost = True
        self._mine = there if there is not None and self._is_mine(there) else None

    def _may_take(self, there: Object) -> bool:
        if self._is_mine(there):
            return True
        self.holder = _holder(there)
        if not self.holder:
            return True
        # Clocks of two nodes may differ: what counts is how long nothing has changed here.
        now, state = self._clock(), there["metadata"].get("resourceVersion")
        if self._seen[0] != state:
            self._seen = (state, now)
        return now >= self._seen[1] + DURATION

    def _is_mine(self, there: Object) -> bool:
        return _holder(there) == self._identity

    def _transitions(self, there: Object) -> int:
        before = there.get("spec", {}).get("leaseTransitions") or 0
        return int(before) + (0 if self._is_mine(there) else 1)

    def _body(self, there: Object, transitions: int) -> Object:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = there.get("spec") or {}
        same = spec.get("holderIdentity") == self._identity
        meta: dict[str, Any] = {"name": NAME, "namespace": self._namespace}
        if version := (there.get("metadata") or {}).get("resourceVersion"):
            meta["resourceVersion"] = version
        return {
            "apiVersion": API_VERSIONS["Lease"],
            "kind": "Lease",
            "metadata": {**meta, "labels": {"app.kubernetes.io/managed-by": FIELD_MANAGER}},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": DURATION,
                "acquireTime": spec.get("acquireTime", now) if same else now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }


def _holder(there: Object) -> str:
    """Return who holds a lease; empty: nobody."""
    return str(there.get("spec", {}).get("holderIdentity") or "")


class Leaseholder:
    """Keeps the leases of all namespaces with deployments, each in a thread of its own."""

    def __init__(self, cluster: Leases, identity: str, lost: Callable[[str], None]) -> None:
        """Hold nothing yet.

        Args:
            cluster: where leases are kept.
            identity: of this operator; a container that starts again in its pod keeps it.
            lost: called with a sentence when somebody else has taken a lease.
        """
        self._cluster, self._identity, self._lost = cluster, identity, lost
        self._lock = threading.Lock()
        self._leases: dict[str, Lease] = {}

    def want(self, namespace: str) -> None:
        """Try to hold a namespace's lease from now on."""
        with self._lock:
            if namespace in self._leases:
                return
            lease = self._leases[namespace] = Lease(self._cluster, namespace, self._identity)
        name = f"lease {namespace}"
        threading.Thread(target=self._keep, args=(namespace, lease), name=name, daemon=True).start()

    def holds(self, namespace: str) -> bool:
        """Whether this operator may write in a namespace."""
        with self._lock:
            lease = self._leases.get(namespace)
        return lease is not None and lease.held

    def require(self, namespace: str) -> None:
        """Raise NotHeldError where this operator may not write."""
        if not self.holds(namespace):
            raise NotHeldError(f"this operator does not hold the lease of namespace {namespace}")

    def waiting(self) -> dict[str, str]:
        """Return the namespaces that others hold, and who."""
        with self._lock:
            leases = dict(self._leases)
        return {where: one.holder for where, one in leases.items() if not one.held}

    def keep_only(self, namespaces: Callable[[], set[str]]) -> None:
        """Let go of the leases of other namespaces: there is nothing to do any more.

        Args:
            namespaces: tells where there is something to do. It is asked when nobody can want a
                lease in between: one that is wanted behind its answer is made anew.
        """
        with self._lock:
            needed = namespaces()
            gone = {where: one for where, one in self._leases.items() if where not in needed}
            for where in gone:
                del self._leases[where]
        for where, one in gone.items():
            _release(where, one)

    def release(self) -> None:
        """Let go of all leases."""
        self.keep_only(set)

    def _keep(self, namespace: str, lease: Lease) -> None:
        said = ""
        while not lease.ended.is_set():
            try:
                lease.turn()
            except ApiException as error:
                _LOG.warning("lease of namespace %s: %s", namespace, reason(error))
            except (OSError, urllib3.exceptions.HTTPError) as error:
                _LOG.warning("lease of namespace %s: %s", namespace, error)
            except Exception:  # without its thread it would never be held again
                _LOG.exception("lease of namespace %s: a try has failed", namespace)
            if lease.lost:
                self._lost(f"{lease.holder or 'another operator'} holds namespace {namespace} now")
                return
            if not lease.held and lease.holder != said:
                said = lease.holder
                _LOG.warning("namespace %s is %s's: waiting for its lease", namespace, said)
            lease.ended.wait(RENEW if lease.held else LOOK)


def _release(namespace: str, lease: Lease) -> None:
    try:
        lease.release()
    except (ApiException, OSError, urllib3.exceptions.HTTPError) as error:
        _LOG.warning("the lease of namespace %s is not released: %s", namespace, error)
