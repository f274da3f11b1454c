"""Whether a child gets on: liveness is progress, not a heartbeat.

A child says ten times a second which step its main loop is in. From what steps usually take, by
kind and size, the judge says when one takes too long. It asks what stands still:

- a process of the child is stopped: nothing more will come of it;
- a step that computes, while nobody computes: something hangs, and the limit is the one for a
  silent child;
- a step that computes, and somebody does: the work may just be long, or the processor taken by
  others, so the limit is long. Where the work has no end, all others would meet the same end; what
  the child said last tells who died over which batch;
- a step that computes without any record works on the whole state: a snapshot, or time that passes
  alone. It has longer still, since no end of it could be laid on a record;
- a step of many records says so itself when it gets on, page by page: the limit is that of a page,
  however large a backlog is;
- a step that waits for Kafka: it ends by itself, and other engines and other brokers tell whether
  it is this engine's fault;
- a step of an adapter at its source or target: calls there have limits of their own, and long ones
  say that they get on. One that does not come back hangs. Between these steps an adapter tells of
  none.

Time is counted in ticks of the listener, as `FailureDetector` does it.
"""

import threading
from collections import deque
from typing import Protocol

from espha.ha.failure_detector import TIMES_USUAL, patience_s
from espha.ha.family import Family, Times, between
from espha.protocol.states import KillReason, Step
from espha.protocol.status import Activity

_FORGETS = 0.995
_START_S = 900.0
"""Spark starts, and a snapshot is restored. Nobody waits for that, and it cannot be hurried."""
_TURN_S = 0.5
"""A child that waits looks about at least so often."""
_BUSY = 0.2
"""Share of the time for which somebody must have run, or wanted to, to be called busy."""
_BUSY_TIMES = 10
"""How many failure timeouts a step that computes may take at least."""
_STARVED = 10
"""How many times longer it may take where others have the processor."""
_RECORD_S = 0.01
"""What an input record may take at least, of a batch never seen: scripts do much for one."""
PAGE_RECORDS = 512
"""More input records than go to the kernel at once, between two signs that the step gets on; see
`espha.pipeline.stream.PAGE_BYTES`."""
_WHOLE_STATE_S = 120.0
"""What a step may take that works on all of the state: a snapshot, or time that passes alone. A
state may be large, and no batch says how large; and of time alone nothing can be set aside."""
_KAFKA_S = 45.0
"""Such steps have limits of their own, of 30 s."""
_SOURCE_S = 300.0
"""A source that is only slow says by then that it gets on, or that nobody answers; one that does
not is perhaps a mount that is dead on this node, and not on that of a standby."""
_TARGET_S = 900.0
"""Likewise; one that is only slow may be given up to ten minutes by its settings."""
_PATIENCE = 20
"""How many times longer everything may take in a child that nobody waits for."""
_MANY = 4
"""Records of a batch from which on it says something of what one record takes."""
_BATCHES = 8
"""So many batches in a row must have been slow for their records to be called so: a few records may
have waited for the processor, and of 512 the same would be a minute. Replays are judged alike:
see `espha.engine.batch_size`."""
_LOOK_AFTER = 2
"""Ticks of standstill after which to look at who computes."""


class Processes(Protocol):
    """What the judge looks at: `espha.ha.family.Family`."""

    @property
    def stopped(self) -> set[int]:
        """Who was stopped at the last look."""

    def tick(self) -> None:
        """Look."""

    def times(self) -> dict[int, Times]:
        """Return for each thread how long it has run, and waited to run."""


class ProgressJudge:
    """Watches one child; what it learns of usual durations may serve the next one, too.

    What the child says comes in a thread of its own.
    """

    def __init__(self, failure_timeout_s: float, tick_s: float) -> None:
        """Be called `tick` every `tick_s`; something frozen may last `failure_timeout_s`."""
        self._lock = threading.Lock()
        self._timeout, self._tick = failure_timeout_s, tick_s
        self._usual: dict[tuple[Step, int], float] = {}
        self._records = deque[float](maxlen=_BATCHES)
        """What a record has taken in the last batches of many."""
        self._family: Processes = Family(None)
        self._told: Activity | None = None
        self._stands_s = 0.0
        self._stopped_s = 0.0
        self._looks: deque[dict[int, Times]] = deque()
        self._first: dict[int, Times] | None = None

    def begin(self, family: Processes) -> None:
        """Watch another child, of which nothing was heard yet."""
        with self._lock:
            self._family, self._told = family, None
            self._stands_s = self._stopped_s = 0.0
            self._looks.clear()
            self._first = None

    def heard(self, told: Activity | None) -> None:
        """Note what the child does."""
        with self._lock:
            before = self._told
            if before and (told is None or told.turn != before.turn):
                self._learn(before, max(before.age_ms / 1000, self._stands_s))
                self._stands_s = 0.0
                self._looks.clear()
                self._first = None
            self._told = told

    def tick(self) -> None:
        """Note that a tick has passed."""
        with self._lock:
            self._stands_s += self._tick
            self._family.tick()
            self._stopped_s = self._stopped_s + self._tick if self._family.stopped else 0.0
            told = self._told
            if not told or not told.step.computes or told.step is Step.STARTING:
                return
            if self._stands_s > _LOOK_AFTER * self._tick:
                self._looks.append(self._family.times())
                self._first = self._first or self._looks[0]
                while len(self._looks) > 1 + round(self._idle_limit(told) / self._tick):
                    self._looks.popleft()

    def verdict(self, leads: bool) -> KillReason | None:
        """Say why the child is to be ended; None: it gets on.

        Args:
            leads: whether it is elected, so that others wait for what it does.
        """
        with self._lock:
            return self._verdict(leads)

    def _verdict(self, leads: bool) -> KillReason | None:
        starts = self._told is not None and self._told.step is Step.STARTING
        slack, patience = self._tick / 2, 1 if leads else _PATIENCE
        if self._stopped_s > patience * self._timeout - slack:
            return KillReason.STOPPED
        if starts:
            patience = 1
        if self._told and self._lasts_s(self._told) > patience * self._limit(self._told) - slack:
            return KillReason.STUCK
        return None

    def _lasts_s(self, told: Activity) -> float:
        """Return for how long the step has lasted; of work, how much of it was done."""
        if not told.step.computes or not self._first or not self._busy():
            return self._stands_s
        # Where others have the processor, time passes and little is done: that is nobody's fault.
        before_s = (_LOOK_AFTER + 1) * self._tick  # nobody looked then
        ran_s = before_s + between(self._first, self._looks[-1]).ran_s
        return min(self._stands_s, max(ran_s, self._stands_s / _STARVED))

    @property
    def stands_s(self) -> float:
        """For how long the child has been in the step that it is in."""
        return self._stands_s

    def _limit(self, told: Activity) -> float:
        if told.step is Step.STARTING:
            return _START_S
        if told.step is Step.WAITING:
            return _TURN_S + self._idle_limit(told)
        if told.step is Step.SOURCE:
            return _SOURCE_S
        if told.step is Step.TARGET:
            return _TARGET_S
        if not told.step.computes:
            return _KAFKA_S
        return self._busy_limit(told) if self._busy() else self._idle_limit(told)

    def _idle_limit(self, told: Activity) -> float:
        return patience_s(self._timeout, self._usual.get(_kind(told), 0.0))

    def _busy_limit(self, told: Activity) -> float:
        if not told.records:
            return max(_WHOLE_STATE_S, TIMES_USUAL * self._usual.get(_kind(told), 0.0))
        records = min(told.records, PAGE_RECORDS)
        each = min(self._records, default=0.0)
        usual = max(self._usual.get(_kind(told), 0.0), each * records)
        return max(_BUSY_TIMES * self._timeout, TIMES_USUAL * usual, _RECORD_S * records)

    def _busy(self) -> bool:
        """Say whether somebody computes, or would if others left him the processor."""
        if len(self._looks) < 2:
            return True  # nobody knows yet
        passed = (len(self._looks) - 1) * self._tick
        return sum(between(self._looks[0], self._looks[-1])) > _BUSY * passed

    def _learn(self, told: Activity, took_s: float) -> None:
        kind = _kind(told)
        self._usual[kind] = max(self._usual.get(kind, 0.0) * _FORGETS, took_s)
        if told.step.computes and told.records >= _MANY:
            self._records.append(took_s / min(told.records, PAGE_RECORDS))


def _kind(told: Activity) -> tuple[Step, int]:
    """Return the step and the order of magnitude of its size."""
    return told.step, told.records.bit_length() // 2
