"""Whether Kafka answers this pod, and whether it answers others.

An active engine that cannot reach Kafka keeps its ZooKeeper session, so nobody takes over. Its
supervisor therefore asks each broker ten times a second which requests it knows, the one question
that any broker answers at once and by itself. When none answers any more, it asks the other
supervisors: if Kafka answers one that is in sync, this engine is the one that is cut off, and has
to go; if it answers nobody, a failover would not help.

The probe speaks to PLAINTEXT listeners only: on one with TLS or SASL no broker would ever answer
it, so nobody would be found to be cut off.

Each broker has a connection and a thread of its own, so that one that is gone delays no other. A
Kafka client is of no use here: it sends a question to one broker, and waits for that one.
"""

import contextlib
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from espha.ha.failure_detector import FailureDetector
from espha.protocol.http import NoAnswerError, addresses, ask_status

_KAFKA_PORT = 9092
_ASK_S = 0.1
_CONNECT_S = 0.5
_ANSWER_S = 2.0
_PEER_S = 0.3
_LENGTH = struct.Struct(">i")
# ApiVersions, version 0, correlation 0, no client id: https://kafka.apache.org/protocol
_QUESTION = struct.pack(">ihhih", 10, 18, 0, 0, -1)


class KafkaProbe:
    """Asks all brokers, again and again, from threads of its own."""

    def __init__(self, bootstrap: str, failure_timeout_ms: int, tick_s: float) -> None:
        """Call Kafka unreachable when no broker has answered for too long.

        Args:
            bootstrap: brokers, "host:port,…".
            failure_timeout_ms: how long that is, in ms; longer where pauses are usual here.
            tick_s: how often `tick` is called.
        """
        self._silent_s, self._tick_s = failure_timeout_ms / 1000, tick_s
        self._detector = FailureDetector(self._silent_s, tick_s)
        self._stopped = threading.Event()
        for broker in filter(None, map(str.strip, bootstrap.split(","))):
            place = urlsplit(f"//{broker}")
            address = place.hostname or "", place.port or _KAFKA_PORT
            threading.Thread(target=self._ask, args=(address,), name="probe", daemon=True).start()

    @property
    def reachable(self) -> bool:
        """Whether Kafka has answered lately."""
        return not self._detector.suspected

    def tick(self) -> None:
        """Note that a tick has passed."""
        self._detector.tick()

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()

    def _ask(self, address: tuple[str, int]) -> None:
        while not self._stopped.is_set():
            with (
                contextlib.suppress(OSError),
                socket.create_connection(address, _CONNECT_S) as connection,
                connection.makefile("rb") as answers,
            ):
                connection.settimeout(_ANSWER_S)
                while not self._stopped.wait(_ASK_S):
                    connection.sendall(_QUESTION)
                    length = answers.read(_LENGTH.size)
                    if len(length) < _LENGTH.size:
                        break
                    answers.read(*_LENGTH.unpack(length))
                    self._heard()
            self._stopped.wait(_ASK_S)

    def _heard(self) -> None:
        if self._detector.suspected:  # how long a cut lasted says nothing about what is usual
            self._detector = FailureDetector(self._silent_s, self._tick_s)
        self._detector.heartbeat()


def others_reach_kafka(peers: str) -> bool:
    """Say whether Kafka answers another engine that could take over.

    Args:
        peers: where supervisors are, "host:port,…"; this one may be among them.
    """
    listed = addresses(peers)
    if not listed:
        return False
    with ThreadPoolExecutor(len(listed)) as pool:
        return any(pool.map(_could_take_over, listed))


def _could_take_over(address: str) -> bool:
    try:
        status = ask_status(address, _PEER_S)
    except NoAnswerError:
        return False
    return status.in_sync and bool(status.kafka_reachable)
