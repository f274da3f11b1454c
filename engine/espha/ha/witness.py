"""The standby as a witness: input that the active engine does not take.

An active engine may be alive, and hear every broker, and still take no input: its connection to one
broker is dead without a word, or its client is at odds with itself. A standby reads the same topics
and sees it. The first in the queue then deposes the active one. That is safe by the epoch; a wrong
guess costs a failover. So there are doubts in favour of the active one:

- where a batch takes its time, input waits longer, and so it may: the limit is a multiple of what
  is usual;
- an active engine that computes is judged by its own supervisor, and one that waits for Kafka may
  do so for longer: it may be Kafka;
- while brokers come and go, nobody is deposed;
- after a take-over the limit is twice as long, for a while, so that two never depose each other in
  turns.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from espha.ha.kafka_probe import ask_peer
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
        self._takeovers: list[float] = []
        self._agreed = 0

    def heard(self, told: ChildStatus) -> None:
        """Note what the own child says."""
        waits_s = (told.unordered_ms or 0) / 1000
        if waits_s < self._waits_s:  # it was ordered after all
            self._usual = max(self._usual * _FORGETS, self._waits_s)
        if not waits_s:
            self._takeovers = [at for at in self._takeovers if self._clock() - at < _REMEMBERS_S]
        self._waits_s = waits_s if told.state is EngineState.STANDBY else 0.0
        if isinstance(told.progress, EngineProgress):
            if self._at and told.progress.epoch > self._at.epoch:
                self._takeovers.append(self._clock())
                self._usual = 0.0  # how long a hole was says nothing about what is usual
            self._at = told.progress

    def suspects(self) -> bool:
        """Say whether input has waited for too long, and the active one does not say why."""
        if self._waits_s <= self._limit_s:
            self._agreed = 0
            return False
        leader = self._leader()
        if leader and (leader.step is None or leader.step.computes or self._behind(leader)):
            self._agreed = 0
            return False
        blind = leader is not None and leader.step is Step.WAITING
        if not blind and self._waits_s <= _WAITS_FOR_KAFKA * self._limit_s:
            return False
        self._agreed += 1
        return self._agreed >= _TWICE

    def deposed(self) -> None:
        """Note that the active one was deposed: the next one has time to begin."""
        self._agreed, self._waits_s = 0, 0.0
        self._takeovers.append(self._clock())

    @property
    def _limit_s(self) -> float:
        limit = max(self._timeout, _TIMES_USUAL * self._usual)
        return min(limit * 2.0 ** len(self._takeovers), _AT_MOST_S)

    def _behind(self, leader: ReplicaStatus) -> bool:
        return bool(self._at and leader.engine and leader.engine.sequence > self._at.sequence)

    def _leader(self) -> ReplicaStatus | None:
        """Return the status of the active engine; None: nobody says that he is."""
        listed = addresses(self._peers)
        if not listed:
            return None
        with ThreadPoolExecutor(len(listed)) as pool:
            found = [status for status in pool.map(ask_peer, listed) if status]
        active = [status for status in found if status.state is EngineState.ACTIVE]
        return max(active, key=lambda one: one.epoch, default=None)
