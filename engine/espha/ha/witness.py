"""The standby as a witness: input that the active engine does not take.

An active engine may be alive, and hear every broker, and still take no input: its connection to one
broker is dead without a word, or its client is at odds with itself. A standby reads the same topics
and sees it. The first in the queue then deposes the active one. That is safe by the epoch; a wrong
guess costs a failover. So there are doubts in favour of the active one:

- where a batch takes its time, input waits longer, and so it may: the limit is a multiple of what
  is usual;
- an active engine that computes is judged by its own supervisor, and one that waits for Kafka may
  do so for longer: it may be Kafka;
- an engine that takes over leads already, though only its first commit makes it the active one;
- whoever leads is blamed only for the time since it does;
- while brokers come and go, nobody is deposed;
- after a take-over the limit is twice as long, for a while, so that two never depose each other in
  turns.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf

from espha.ha.kafka_probe import ask_peer
from espha.ha.switchover import takes_over
from espha.protocol.http import addresses
from espha.protocol.states import EngineState, Step
from espha.protocol.status import ChildStatus, EngineProgress, ReplicaStatus

_TIMES_USUAL = 4
_FORGETS = 0.9
_WAITS_FOR_KAFKA = 4
"""How many times longer an engine may wait that does not simply wait for input."""
_REMEMBERS_S = 15.0
"""How long a take-over counts after which input was taken again; another one counts until then."""
_AT_MOST_S = 30.0
_TWICE = 2
"""So many looks at the active one in a row must say the same."""
_UNASKED_S = 1.0
"""Who was not asked for so long has not been the next in line: another one may lead since."""


class Witness:
    """Judges, in a standby's supervisor, whether the active engine takes its input."""

    def __init__(
        self,
        failure_timeout_s: float,
        peers: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let input wait `failure_timeout_s` at least; `peers` are the other supervisors."""
        self._timeout, self._peers, self._clock = failure_timeout_s, peers, clock
        self._waits_s = 0.0
        self._usual = 0.0
        self._at: EngineProgress | None = None
        self._who = ""
        """Name of whoever leads, as far as is known."""
        self._since = self._asked = self._answered = -inf
        """Since when he does, when this one was asked last, and when he has answered last."""
        self._takeovers: list[float] = []
        self._agreed = 0

    def heard(self, told: ChildStatus) -> None:
        """Note what the own child says."""
        if isinstance(told.progress, EngineProgress):
            self._follow(self._at, told.progress)
            self._at = told.progress
        waits_s = min((told.unordered_ms or 0) / 1000, self._clock() - self._since)
        if waits_s < self._waits_s:  # it was ordered after all
            self._usual = max(self._usual * _FORGETS, self._waits_s)
        if not told.unordered_ms:
            self._takeovers = [at for at in self._takeovers if self._clock() - at < _REMEMBERS_S]
        self._waits_s = waits_s if told.state is EngineState.STANDBY else 0.0

    def suspects(self) -> bool:
        """Say whether input has waited for too long, and the active one does not say why.

        It is asked in each tick in which this one is the next in line.
        """
        now = self._clock()
        if now - self._asked > _UNASKED_S:
            self._begin_anew()
        self._asked = now
        self._agreed = self._agreed + 1 if self._may_blame() else 0
        return self._agreed >= _TWICE

    def deposed(self) -> None:
        """Note that the active one was deposed: the next one has time to begin."""
        self._begin_anew()
        self._takeovers.append(self._clock())

    def _begin_anew(self) -> None:
        """Note that from now on another one may lead."""
        self._agreed, self._waits_s, self._since = 0, 0.0, self._clock()

    def _follow(self, before: EngineProgress | None, now: EngineProgress) -> None:
        """Note who leads by the order log."""
        if before and now.epoch > before.epoch:
            self._takeovers.append(self._clock())
            self._usual = 0.0  # how long a hole was says nothing about what is usual
            self._begin_anew()
        if before is None or (now.epoch, now.active) != (before.epoch, before.active):
            self._who = now.active

    def _may_blame(self) -> bool:
        """Say whether input waits for too long, and whoever leads does not say why."""
        if self._waits_s <= self._limit_s:
            return False
        leader, now = self._leader(), self._clock()
        if leader is None:
            stands_s = now - self._answered
            return min(stands_s, self._waits_s) > _WAITS_FOR_KAFKA * self._limit_s
        self._answered = now
        if leader.name != self._who:
            self._who = leader.name
            self._begin_anew()
        if leader.step is None or leader.step.computes or self._behind(leader):
            return False
        if leader.step is Step.WAITING:
            return self._waits_s > self._limit_s
        stands_s = inf if leader.step_s is None else leader.step_s
        return min(stands_s, self._waits_s) > _WAITS_FOR_KAFKA * self._limit_s

    @property
    def _limit_s(self) -> float:
        limit = max(self._timeout, _TIMES_USUAL * self._usual)
        return max(self._timeout, min(limit * 2.0 ** len(self._takeovers), _AT_MOST_S))

    def _behind(self, leader: ReplicaStatus) -> bool:
        return bool(self._at and leader.engine and leader.engine.sequence > self._at.sequence)

    def _leader(self) -> ReplicaStatus | None:
        """Return the status of whoever leads, or is about to; None: nobody says that he does."""
        listed = addresses(self._peers)
        if not listed:
            return None
        with ThreadPoolExecutor(len(listed)) as pool:
            found = [status for status in pool.map(ask_peer, listed) if status]
        leads = [one for one in found if one.state is EngineState.ACTIVE or self._takes_over(one)]
        return max(leads, key=lambda one: (one.epoch, self._takes_over(one)), default=None)

    def _takes_over(self, told: ReplicaStatus) -> bool:
        """Tell whether somebody takes over; who was frozen in his take-over is behind by now."""
        known = self._at.sequence if self._at else 0
        return takes_over(told) and told.engine is not None and told.engine.sequence >= known
