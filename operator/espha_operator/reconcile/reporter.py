"""Writing a deployment's status: when it has changed, and not each time a pod finds new words."""

import logging
from collections.abc import Callable

from espha_operator.api import Status
from espha_operator.reconcile.cluster import Cluster
from espha_operator.reconcile.pace import Pace
from espha_operator.reconcile.recorder import Recorder
from espha_operator.reconcile.store import version
from espha_operator.resources.meta import Object

# Writes a minute, at most: of what has changed, of messages alone, and of adapters' counts alone.
CHANGES, MESSAGES, COUNTS = 20, 6, 2
_COUNTED = ("rows", "rejected", "position", "lag", "lagUnit")
_LOG = logging.getLogger(__name__)


class Reporter:
    """Writes one deployment's status."""

    def __init__(
        self, cluster: Cluster, namespace: str, name: str, clock: Callable[[], float]
    ) -> None:
        """Nothing has been written."""
        self._cluster, self._namespace, self._name = cluster, namespace, name
        self._changes, self._messages = Pace(CHANGES, clock), Pace(MESSAGES, clock)
        self._counts = Pace(COUNTS, clock, at_once=1)
        self.recorder = Recorder(cluster, clock)
        self._told: tuple[Status, int] | None = None

    def before(self, resource: Object) -> Status:
        """Return the status as it is: the one read, or the one written if that is newer."""
        if self._told is not None and version(resource) < self._told[1]:
            return self._told[0]
        return Status.read(resource.get("status"))

    def report(self, resource: Object, before: Status, after: Status) -> None:
        """Write it if it differs, and tell in Events what is new.

        What differs in words or in adapters' counts only waits for its turn.
        """
        if after == before or not self._pace(before, after).take():
            return
        _LOG.info("%s/%s: %s", self._namespace, self._name, _summary(after))
        made = self._cluster.apply_status(self._namespace, self._name, _dumped(after))
        self._told = after, version(made)
        self.recorder.status(resource, before, after)

    def _pace(self, before: Status, after: Status) -> Pace:
        if _countless(after) == _countless(before):
            return self._counts
        return self._messages if _wordless(after) == _wordless(before) else self._changes


def _wordless(status: Status) -> Object:
    plain = _countless(status)
    for condition in plain.get("conditions", []):
        condition.pop("message")
    return plain


def _countless(status: Status) -> Object:
    plain = _dumped(status)
    for adapter in plain.get("adapters", []):
        for name in _COUNTED:
            adapter.pop(name, None)
    return plain


def _dumped(status: Status) -> Object:
    return status.model_dump(by_alias=True, exclude_none=True)


def _summary(status: Status) -> str:
    ready = status.conditions[-1]
    return f"{status.phase}: {ready.reason}: {ready.message}"
