"""The controllers of a managed Kafka: who is active, and who follows.

confluent-kafka cannot ask this (DescribeQuorum, KIP-595). kafka-python can (`kafka_talk`), but with
one frozen broker of three it mostly waits for that one, just when the answer matters. So the one
request is made here, by hand, of each broker, which passes it on to the active controller.
https://kafka.apache.org/protocol#The_Messages_DescribeQuorum
"""

import socket
import struct
import time
from dataclasses import dataclass

from espha_operator.reconcile.timely import receive

# Seconds for a whole answer: a broker that has lost the controller waits for the next one.
ANSWER = 2.0
_KEY, _VERSION, _CORRELATION = 55, 1, 7
_TOPIC = b"__cluster_metadata"
_LARGEST = 1 << 20
# A number has five bytes at most, of seven bits each (KIP-482).
_VARINT_BITS = 35
# A controller that has caught up so many ms ago follows: they fetch twice a second at least.
_FOLLOWS_MS = 3000


class QuorumError(Exception):
    """A broker does not say who the controllers are."""


@dataclass(frozen=True)
class Quorum:
    """The controllers.

    Attributes:
        leader: the active one.
        caught_up: for each voter, when it last had everything, in ms of the active one's clock.
    """

    leader: int
    caught_up: dict[int, int]

    @property
    def lagging(self) -> tuple[int, ...]:
        """The voters that do not follow."""
        now = max(self.caught_up.values(), default=0)
        late = (one for one, when in self.caught_up.items() if when < now - _FOLLOWS_MS)
        return tuple(sorted(one for one in late if one != self.leader))


def describe_quorum(host: str, port: int, timeout_s: float = ANSWER) -> Quorum:
    """Ask a broker.

    Args:
        host: where it listens.
        port: of its clients.
        timeout_s: how long connecting, and then the whole answer, may take.

    Raises:
        QuorumError: it does not answer in time, or not with what is asked for.
    """
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(request())
            return read(_body(connection, time.monotonic() + timeout_s))
    except OSError as error:
        raise QuorumError(f"{host}:{port}: {error}") from None


def request() -> bytes:
    """Return the request, with its length."""
    head = struct.pack(">hhih", _KEY, _VERSION, _CORRELATION, -1) + b"\0"
    partitions = b"\x02" + struct.pack(">i", 0) + b"\0"
    topics = b"\x02" + bytes([len(_TOPIC) + 1]) + _TOPIC + partitions + b"\0"
    whole = head + topics + b"\0"
    return struct.pack(">i", len(whole)) + whole


def read(answer: bytes) -> Quorum:
    """Return what an answer says.

    Raises:
        QuorumError: it is an error, or is not as the protocol says.
    """
    parts = _Parts(answer)
    try:
        return _quorum(parts)
    except (struct.error, IndexError) as error:
        raise QuorumError(f"the answer cannot be read: {error}") from None


def _quorum(parts: "_Parts") -> Quorum:
    parts.number(">i")
    parts.skip_tags()
    _check(parts.number(">h"))
    found: list[Quorum] = []
    for _ in range(parts.length()):
        parts.skip(parts.length())
        for _ in range(parts.length()):
            found.append(_partition(parts))
        parts.skip_tags()
    if not found:
        raise QuorumError("the answer names no partition")
    return found[0]


def _partition(parts: "_Parts") -> Quorum:
    parts.number(">i")
    _check(parts.number(">h"))
    leader = parts.number(">i")
    parts.number(">i")
    parts.number(">q")
    voters, _ = _replicas(parts), _replicas(parts)
    parts.skip_tags()
    return Quorum(leader, voters)


def _replicas(parts: "_Parts") -> dict[int, int]:
    found = {}
    for _ in range(parts.length()):
        replica = parts.number(">i")
        parts.number(">q")
        parts.number(">q")
        found[replica] = parts.number(">q")
        parts.skip_tags()
    return found


def _check(error: int) -> None:
    if error:
        raise QuorumError(f"Kafka answers with error {error}")


def _body(connection: socket.socket, until: float) -> bytes:
    (length,) = struct.unpack(">i", _exactly(connection, 4, until))
    if not 0 < length <= _LARGEST:
        raise QuorumError(f"the answer has {length} bytes")
    return _exactly(connection, length, until)


def _exactly(connection: socket.socket, count: int, until: float) -> bytes:
    whole = bytearray()
    while len(whole) < count:
        part = receive(connection, count - len(whole), until)
        if not part:
            raise ConnectionResetError("the connection has ended")
        whole += part
    return bytes(whole)


class _Parts:
    """Reads a message from its beginning."""

    def __init__(self, whole: bytes) -> None:
        self._whole, self._at = whole, 0

    def number(self, form: str) -> int:
        (found,) = struct.unpack_from(form, self._whole, self._at)
        self._at += struct.calcsize(form)
        return int(found)

    def varint(self) -> int:
        """Return a number of 32 bits; to add up one of a mebibyte would take minutes."""
        found = 0
        for shift in range(0, _VARINT_BITS, 7):
            byte = self._whole[self._at]
            self._at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise QuorumError("the answer cannot be read: a number has too many bytes")

    def length(self) -> int:
        """Return a length, which is sent with one added; of nothing, 0."""
        return max(0, self.varint() - 1)

    def skip(self, count: int) -> None:
        self._at += count

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())
