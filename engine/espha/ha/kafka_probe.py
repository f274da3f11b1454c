"""Whether Kafka answers this pod, and whether it answers others.

An active engine that cannot reach Kafka keeps its ZooKeeper session, so nobody takes over. Its
supervisor therefore asks each broker ten times a second which requests it knows, the one question
that any broker answers at once and by itself. When one does not answer any more, it asks the other
supervisors: if that one still answers another that is in sync, and so do all brokers that answer
here, then this engine is the one that is cut off, and has to go: the silent broker may lead the
topic that it reads or writes. If the broker answers nobody, a failover would not help; and where
each reaches what the other does not, nobody goes, or they would depose each other in turns. A
broker that comes back is found by one engine sooner than by another, since its new address takes
its time to be known everywhere: who finds it late is not cut off.

The probe speaks to PLAINTEXT listeners only: on one with TLS or SASL no broker would ever answer
it, so nobody would be found to be cut off.

Each broker has a connection and a thread of its own, so that one that is gone delays no other. A
Kafka client is of no use here: it sends a question to one broker, and waits for that one.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from urllib.parse import urlsplit

from espha.backoff import Backoff
from espha.ha.failure_detector import FailureDetector
from espha.protocol.http import NoAnswerError, addresses, ask_status
from espha.protocol.status import ReplicaStatus

_KAFKA_PORT = 9092
_ASK_S = 0.1
_CONNECT_S = 0.5
_ANSWER_S = 2.0
_PEER_S = 0.3
_DAY_S = 86_400.0
_LONGEST_PACE_S = 5.0
_LENGTH = struct.Struct(">i")
# ApiVersions, version 0, correlation 0, no client id: https://kafka.apache.org/protocol
_QUESTION = struct.pack(">ihhih", 10, 18, 0, 0, -1)


_LATELY_MS = 300
"""Who has heard a broker so lately has heard it after it fell silent here."""
_FOUND_MS = 10_000
"""Within this time everybody finds a broker that has come back."""
_SETTLED_S = 2.0
"""For so long nothing must have changed before an engine that stands still may be to blame."""
_SETTLED_WITHOUT_S = 30.0
"""The same, where a broker is silent: partitions find new leaders first, and clients find these."""


class KafkaProbe:
    """Asks all brokers, again and again, from threads of its own."""

    def __init__(self, bootstrap: str, failure_timeout_ms: int, tick_s: float) -> None:
        """Call a broker unreachable when it has not answered for too long.

        Args:
            bootstrap: brokers, "host:port,…".
            failure_timeout_ms: how long that is, in ms; longer where pauses are usual here.
            tick_s: how often `tick` is called.
        """
        self._tick_s = tick_s
        self._stopped = threading.Event()
        self._calm_s = 0.0
        self._before: tuple[bool, ...] = ()
        self._brokers: list[_Broker] = []
        for broker in filter(None, map(str.strip, bootstrap.split(","))):
            place = urlsplit(f"//{broker}")
            self._brokers.append(_Broker(failure_timeout_ms / 1000, tick_s))
            threading.Thread(
                target=self._ask,
                args=((place.hostname or "", place.port or _KAFKA_PORT), self._brokers[-1]),
                name="probe",
                daemon=True,
            ).start()

    @property
    def reachable(self) -> bool:
        """Whether any broker has answered lately."""
        return any(broker.reachable for broker in self._brokers)

    @property
    def silent_ms(self) -> tuple[int, ...]:
        """For how long each broker has not answered, in the order in which they were named."""
        return tuple(broker.silent_ms for broker in self._brokers)

    @property
    def heard_ms(self) -> tuple[int, ...]:
        """For how long each broker has answered without a pause, in the same order."""
        return tuple(broker.heard_ms for broker in self._brokers)

    @property
    def answers(self) -> tuple[bool, ...]:
        """Whether each broker has answered lately, in the order in which they were named."""
        return tuple(broker.reachable for broker in self._brokers)

    @property
    def settled(self) -> bool:
        """Whether most brokers answer, and who does has been the same for a while.

        Without most of them nothing can be written, whoever tries.
        """
        up = self._up()
        wanted_s = _SETTLED_S if len(up) == len(self._brokers) else _SETTLED_WITHOUT_S
        lately = (self._brokers[at].silent_ms < _LATELY_MS for at in up)
        return 2 * len(up) > len(self._brokers) and self._calm_s > wanted_s and all(lately)

    def _up(self) -> list[int]:
        return [at for at, up in enumerate(self._before) if up]

    def tick(self) -> None:
        """Note that a tick has passed."""
        for broker in self._brokers:
            broker.tick()
        self._calm_s = self._calm_s + self._tick_s if self.answers == self._before else 0.0
        self._before = self.answers

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()

    def _ask(self, address: tuple[str, int], broker: "_Broker") -> None:
        while not self._stopped.is_set():
            broker.asked()
            with (
                contextlib.suppress(OSError),
                socket.create_connection(address, _CONNECT_S) as connection,
                connection.makefile("rb") as answers,
            ):
                connection.settimeout(_ANSWER_S)
                while not self._stopped.wait(_ASK_S):
                    broker.asked()
                    connection.sendall(_QUESTION)
                    length = answers.read(_LENGTH.size)
                    if len(length) < _LENGTH.size:
                        break
                    answers.read(*_LENGTH.unpack(length))
                    broker.heard()
            self._stopped.wait(_ASK_S)


class _Broker:
    """When one broker has answered.

    What is usual is learned from when it is asked: how often that is says nothing about it.
    """

    def __init__(self, silent_s: float, tick_s: float) -> None:
        self._silent_s, self._tick_s = silent_s, tick_s
        self._detector = FailureDetector(silent_s, tick_s)
        self._last = self._first = -inf
        self._unasked_s: float | None = None
        """How long it had been silent when it was asked; None: it has answered since."""

    @property
    def reachable(self) -> bool:
        return not self._detector.suspected

    @property
    def silent_ms(self) -> int:
        """By the clock, which others have too; a day where it has never answered."""
        return round(min(time.monotonic() - self._last, _DAY_S) * 1000)

    @property
    def heard_ms(self) -> int:
        return round((self._last - self._first) * 1000) if self._first > -inf else 0

    def tick(self) -> None:
        self._detector.tick()

    def asked(self) -> None:
        if self._unasked_s is None:
            self._unasked_s = self._detector.silent_s

    def heard(self) -> None:
        before, self._last = self._last, time.monotonic()
        # By ticks: where this listener itself did not run, the broker was not silent.
        if before == -inf or self._detector.is_silent_for(self._silent_s):
            self._first = self._last
        if self._detector.suspected:  # how long a cut lasted says nothing about what is usual
            self._detector = FailureDetector(self._silent_s, self._tick_s)
        self._detector.heartbeat(self._unasked_s or 0.0)
        self._unasked_s = None


def others_reach_more(peers: str, answers: Sequence[bool], silent_ms: Sequence[int]) -> bool:
    """Say whether an engine that could take over hears brokers that are silent here.

    It must hear all that answer here, too.

    Args:
        peers: where supervisors are, "host:port,…"; this one may be among them.
        answers: which brokers answer here.
        silent_ms: for how long each of them has not.
    """
    listed = addresses(peers)
    if not listed:
        return False
    with ThreadPoolExecutor(len(listed)) as pool:
        return any(
            status.in_sync and _hears_more(status, answers, silent_ms)
            for status in pool.map(ask_peer, listed)
            if status
        )


def _hears_more(status: ReplicaStatus, answers: Sequence[bool], silent_ms: Sequence[int]) -> bool:
    if len(status.kafka_silent_ms) != len(answers):  # it is older, or was told of other brokers
        return bool(status.kafka_reachable) and not any(answers)
    hears = [silent < _LATELY_MS for silent in status.kafka_silent_ms]
    heard = status.kafka_heard_ms or [_FOUND_MS] * len(answers)  # an older one does not say it
    still = [
        there and since >= min(silent, _FOUND_MS)
        for there, since, silent in zip(hears, heard, silent_ms, strict=True)
    ]
    return all(there or not here for there, here in zip(hears, answers, strict=True)) and any(
        there and not here for there, here in zip(still, answers, strict=True)
    )


def ask_peer(address: str) -> ReplicaStatus | None:
    """Return what a supervisor says, or nothing when it does not do so at once."""
    try:
        return ask_status(address, _PEER_S)
    except NoAnswerError:
        return None


class Pace:
    """How often to ask others about brokers that are silent: at first with each look."""

    def __init__(self, first_s: float) -> None:
        self._answers: tuple[bool, ...] = ()
        self._backoff = Backoff(first_s, _LONGEST_PACE_S)
        self._next = 0.0

    def due(self, answers: tuple[bool, ...]) -> bool:
        """Say whether it is time to ask, given who answers here."""
        now = time.monotonic()
        if answers != self._answers:
            self._answers, self._next = answers, now
            self._backoff.reset()
        if now < self._next:
            return False
        self._next = now + self._backoff.next()
        return True
