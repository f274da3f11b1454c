"""Pauses between the lives of a child: ever longer ones, until something has worked."""

import threading
from typing import Protocol

from espha.backoff import Backoff

_FIRST_S = 0.3
"""The successor needs the processor just then."""
_LONGEST_S = 30.0


class Probe(Protocol):
    """Who asks brokers: `espha.ha.kafka_probe.KafkaProbe`."""

    @property
    def answers(self) -> tuple[bool, ...]:
        """Whether each broker has answered lately."""

    def tick(self) -> None:
        """Note that a tick has passed."""


class Pauses:
    """Pauses that end, and begin anew with short ones, when brokers answer again.

    Without Kafka no life comes far. So when a broker is back that was away, how often it went wrong
    before says nothing any more.
    """

    def __init__(self, stop: threading.Event, probe: Probe | None, tick_s: float) -> None:
        """Be called `tick` every `tick_s` outside of pauses; `stop` ends all of them."""
        self._stop, self._probe, self._tick_s = stop, probe, tick_s
        self._backoff = Backoff(_FIRST_S, _LONGEST_S)
        self._answers = probe.answers if probe else ()
        self._is_back = False

    def reset(self) -> None:
        """Begin anew: something worked."""
        self._backoff.reset()

    def tick(self) -> None:
        """Note that a tick has passed."""
        if self._probe is None:
            return
        self._probe.tick()
        before, self._answers = self._answers, self._probe.answers
        pairs = zip(before, self._answers, strict=True)
        self._is_back = self._is_back or any(now and not then for then, now in pairs)

    def rest(self, at_least_s: float) -> bool:
        """Let a pause pass, of `at_least_s` in any case; say whether there is no next life."""
        if self._is_back:
            self.reset()
        self._is_back = False
        length, passed = max(self._backoff.next(), at_least_s), 0.0
        while passed < length:
            step = min(self._tick_s, length - passed)
            if self._stop.wait(step):
                return True
            passed += step
            self.tick()
            if self._is_back:
                self.reset()
                length = min(length, at_least_s)
        self._is_back = False
        return self._stop.is_set()
