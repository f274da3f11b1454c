"""Bringing wanted objects to the API server, and asking it for nothing that is there already."""

import json
import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import urllib3
from kubernetes.client.exceptions import ApiException

from espha_operator.api.deployment import Deployment
from espha_operator.reconcile.cluster import MADE, Cluster, is_refusal, reason
from espha_operator.reconcile.observe import owners, selector
from espha_operator.reconcile.store import version
from espha_operator.resources.meta import Object, checksum
from espha_operator.status.texts import listed

# Seconds after which an object is applied again although nothing has happened to it.
RESYNC = 600.0
# Seconds for which the store may not have what was just applied.
LAG = 5.0
# Seconds between two applies of an object that others change again and again.
CALM = 15.0
# Seconds until the next try after a refusal, and at most; doubled each time.
REFUSED, LONGEST = 30.0, 120.0
# The same when the API server could not be asked or was busy.
AWAY = 2.0


@dataclass
class _Applied:
    """What is known of one object.

    Attributes:
        wanted: checksum of what was applied last, or tried.
        stamp: of the object as the API server had it then; None: it was refused.
        version: of that object.
        at: when that was.
        due: when it is applied again, whatever has happened; also the end of a back-off.
        failures: refusals in a row.
        error: why it was refused the last time; empty: it was not.
    """

    wanted: str = ""
    stamp: str | None = None
    version: int = 0
    at: float = 0.0
    due: float = 0.0
    failures: int = 0
    error: str = ""


class Applier:
    """Applies an object when it should be another one, when it is not as it was, and seldom else.

    One that is refused holds up no other one, and is tried again after a pause.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        """Start with everything to be applied."""
        self._cluster, self._clock = cluster, clock
        self._known: dict[tuple[str, str], _Applied] = {}
        self._leftovers: dict[tuple[str, str], _Applied] = {}

    def apply(
        self, deployment: Deployment, wanted: list[Object], kept: Collection[str] = ()
    ) -> str:
        """Apply wanted objects, and delete the deployment's others, unless their names are kept.

        Returns:
            What the API server refuses, as a sentence; empty when it takes everything.
        """
        names = {_key(one) for one in wanted}
        self._known = {key: one for key, one in self._known.items() if key in names}
        for one in wanted:
            known = self._known.setdefault(_key(one), _Applied())
            if self._is_due(one, known):
                self._apply(deployment, one, known)
        refused = [one.error for one in self._known.values() if one.error]
        left = self._prune(deployment, names, kept, all_is_applied=not refused)
        return listed([*refused, *left])

    def forget(self, kind: str, name: str) -> None:
        """Have an object applied with the next step, whatever is known of it."""
        self._known.pop((kind, name), None)

    def _is_due(self, one: Object, known: _Applied) -> bool:
        now = self._clock()
        if known.wanted != _checksum(one) or now >= known.due:
            return True
        return not known.error and now >= known.at + LAG and self._has_changed(one, known)

    def _has_changed(self, one: Object, known: _Applied) -> bool:
        meta = one["metadata"]
        seen = self._cluster.store.get(one["kind"], meta["namespace"], meta["name"])
        if seen is None:
            return True
        if version(seen) < known.version or _stamp(seen) == known.stamp:
            return False
        return self._clock() >= known.at + CALM

    def _apply(self, deployment: Deployment, one: Object, known: _Applied) -> None:
        known.wanted, known.at = _checksum(one), self._clock()
        try:
            made = self._cluster.apply(self._as_ours(deployment, one))
        except NotOursError as error:
            self._failed(known, REFUSED, str(error))
        except ApiException as error:
            usual = REFUSED if is_refusal(error) else AWAY
            self._failed(known, usual, f"{one['kind']} {one['metadata']['name']}: {reason(error)}")
        except (OSError, urllib3.exceptions.HTTPError):
            # Whether it was applied is not known; nor would the next one be.
            known.wanted = ""
            raise
        else:
            known.stamp, known.version = _stamp(made), version(made)
            known.failures, known.error = 0, ""
            known.due = self._clock() + RESYNC * _jitter()

    def _failed(self, known: _Applied, first: float, error: str) -> None:
        pause = min(first * 2**known.failures, LONGEST)
        known.failures, known.error, known.stamp = known.failures + 1, error, None
        known.due = self._clock() + pause

    def _as_ours(self, deployment: Deployment, one: Object) -> Object:
        """Return the object with the identity of the one that it changes.

        With it, the API server refuses when somebody has put another one in its place meanwhile.

        Raises:
            NotOursError: there is one that was not made for this deployment.
        """
        kind, meta = one["kind"], one["metadata"]
        there = self._cluster.store.get(kind, meta["namespace"], meta["name"])
        if there is None or deployment.uid not in owners(there):
            # The store has only what carries the operator's label.
            there = self._cluster.read(kind, meta["namespace"], meta["name"])
        if there is None:
            return one
        if deployment.uid not in owners(there):
            raise NotOursError(there)
        return {**one, "metadata": {**meta, "uid": there["metadata"]["uid"]}}

    def _prune(
        self,
        deployment: Deployment,
        wanted: set[tuple[str, str]],
        kept: Collection[str],
        *,
        all_is_applied: bool,
    ) -> list[str]:
        unwanted = {
            key: one
            for key, one in self._ours(deployment)
            if key not in wanted and key[1] not in kept
        }
        # A refusal is over when the object has gone, or is wanted again.
        self._leftovers = {key: left for key, left in self._leftovers.items() if key in unwanted}
        for key, one in unwanted.items():
            # A pod that could not be changed may still mount a ConfigMap.
            if all_is_applied or key[0] != "ConfigMap":
                self._delete(key, one)
        return [left.error for left in self._leftovers.values() if left.error]

    def _ours(self, deployment: Deployment) -> Iterator[tuple[tuple[str, str], Object]]:
        """Yield what was made for the deployment and is not on its way out, with its key."""
        for kind in MADE:
            for one in self._cluster.list(kind, deployment.namespace, selector(deployment)):
                meta = one["metadata"]
                if "deletionTimestamp" not in meta and deployment.uid in owners(one):
                    yield (kind, meta["name"]), one

    def _delete(self, key: tuple[str, str], one: Object) -> None:
        known = self._leftovers.setdefault(key, _Applied())
        if self._clock() < known.due:
            return
        meta = one["metadata"]
        try:
            self._cluster.delete(key[0], meta["namespace"], meta["name"], meta["uid"])
        except ApiException as error:
            self._failed(known, REFUSED, f"{key[0]} {key[1]} cannot be deleted: {reason(error)}")
        else:
            known.error, known.due = "", self._clock() + LAG


class NotOursError(Exception):
    """An object of that name exists, and was not made for the deployment."""

    def __init__(self, there: Object) -> None:
        """Say whose it is."""
        whose = next(
            (
                f", but {one['kind']} {one['name']}'s"
                for one in there["metadata"].get("ownerReferences") or []
            ),
            "; the operator takes over nothing that it has not made: rename or delete it",
        )
        super().__init__(
            f"{there['kind']} {there['metadata']['name']} exists and is not this deployment's"
            f"{whose}."
        )


def _key(one: Object) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]


def _checksum(one: Object) -> str:
    return checksum(json.dumps(one, sort_keys=True))


def _stamp(one: Object) -> str:
    """Return what changes when somebody changes an object, and not when its status changes."""
    meta = one["metadata"]
    of_spec = meta.get("generation") or meta.get("resourceVersion")
    said = [meta.get(key) for key in ("uid", "labels", "annotations", "ownerReferences")]
    return checksum(json.dumps([of_spec, *said], sort_keys=True))


def _jitter() -> float:
    return random.uniform(0.75, 1.25)  # noqa: S311 - nobody gains by guessing it
