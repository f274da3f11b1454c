"""Posts Kubernetes Events about what happened to a deployment; never too many."""

import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from kubernetes.client.exceptions import ApiException

from espha.protocol.status import ReplicaStatus
from espha_operator.api import Status
from espha_operator.reconcile.cluster import Cluster, reason
from espha_operator.reconcile.pace import Pace
from espha_operator.resources.events import event
from espha_operator.resources.meta import Object
from espha_operator.status.facts import Facts
from espha_operator.status.happenings import TAKE_OVERS, Happening, by_engines, by_status

# Events of one reason: so many at once, and then so many a minute.
AT_ONCE, A_MINUTE = 5, 1
_LOG = logging.getLogger(__name__)


class Recorder:
    """Tells what has changed between two steps.

    What changes in the status is told once, because the status is kept: an operator that starts
    again knows what it has told. What engines count is compared with the step before.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without having seen anything."""
        self._cluster = cluster
        self._seen: dict[str, ReplicaStatus] = {}
        self._paces: dict[str, Pace] = {}
        self._clock = clock
        self._epoch = 0

    def status(self, resource: Object, before: Status, after: Status) -> None:
        """Tell what the new status says that the one before did not."""
        self._post(resource, by_status(before, after))

    def engines(self, resource: Object, before: Status, facts: Facts) -> None:
        """Tell what has happened to the engines since the last step."""
        news = list(by_engines(before, facts, self._seen))
        # A status that is written later must not let a take-over be told twice.
        active = facts.active
        told = active is not None and active.epoch <= self._epoch
        self._post(resource, [one for one in news if not (told and one.reason in TAKE_OVERS)])
        self._epoch = max(self._epoch, active.epoch if active else 0)
        self._seen |= {one.name: one for one in facts.engines}

    def _post(self, resource: Object, happenings: Iterable[Happening]) -> None:
        for one in happenings:
            if not self._pace(one.reason).take():
                _LOG.warning("too many Events %s; this one is not posted: %s", *one[:2])
                continue
            made = event(resource, one.reason, one.message, good=one.good, now=datetime.now(UTC))
            try:
                self._cluster.create(made)
            except ApiException as error:
                _LOG.warning("no Event %s: %s", one.reason, reason(error))

    def _pace(self, why: str) -> Pace:
        if why not in self._paces:
            self._paces[why] = Pace(A_MINUTE, self._clock, AT_ONCE)
        return self._paces[why]
