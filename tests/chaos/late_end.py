"""The end of a transaction that comes late: once more, in the middle of a later one (KAFKA-17754).

A client whose request for the end of a transaction is not answered in time asks again. When the
first request was only slow, it is handled after the second one, and the next transaction may be
open by then. Brokers must not end that one by it. No client sends such a request on purpose, so
this module speaks Kafka's protocol: https://kafka.apache.org/protocol
"""

import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from random import Random
from typing import NamedTuple

from confluent_kafka import KafkaError

from chaos.stroke import Stroke
from chaos.trial import Trial
from espha.local.ports import HOST
from support.replicas import LIMIT_S
from support.servers import Kafka, wait_until

_END_TXN, _DESCRIBE_TRANSACTIONS = (26, 5), (65, 0)
"""Requests: key, and version."""
_ANSWER_S = 5.0
_LENGTH = struct.Struct(">i")
_NO_TAGS = b"\0"
_ROUNDS, _ENDS = 5, 20
_PAUSE_S = 0.002


class Transaction(NamedTuple):
    """What the coordinator says of a transactional id."""

    state: str
    """`Empty`, `Ongoing`, `PrepareCommit`, `CompleteCommit` …"""
    producer: int
    epoch: int
    """Of the transaction that is open, or comes next: each has one of its own."""


class Coordinator:
    """The broker that coordinates the transactions of an id, asked over a connection of its own."""

    def __init__(self, kafka: Kafka, transactional_id: str) -> None:
        self._id = _text(transactional_id)
        port = kafka.coordinator_of(transactional_id).port
        self._connection = socket.create_connection((HOST, port), _ANSWER_S)
        self._answers = self._connection.makefile("rb")

    def transaction(self) -> Transaction:
        """Return what it knows."""
        said = self._ask(_DESCRIBE_TRANSACTIONS, b"\2" + self._id + _NO_TAGS)
        _throttled, count, error = struct.unpack_from(">iBh", said)
        assert (count, error) == (2, 0), f"one transaction, no error: {count - 1}, {error}"
        at = 7 + len(self._id)
        length = said[at] - 1
        state = said[at + 1 : at + 1 + length].decode()
        _timeout, _began, producer, epoch = struct.unpack_from(">iqqh", said, at + 1 + length)
        return Transaction(state, producer, epoch)

    def end(self, producer: int, epoch: int) -> int:
        """Ask it to commit the transaction with this epoch; return the error, 0: none."""
        wanted = struct.pack(">qh?", producer, epoch, True)
        said = self._ask(_END_TXN, self._id + wanted + _NO_TAGS)
        return int(struct.unpack_from(">ih", said)[1])

    def close(self) -> None:
        """Let go."""
        self._answers.close()
        self._connection.close()

    def _ask(self, request: tuple[int, int], content: bytes) -> bytes:
        """Return what is in an answer, behind its header."""
        header = struct.pack(">hhih", *request, 0, -1) + _NO_TAGS
        self._connection.sendall(_LENGTH.pack(len(header) + len(content)) + header + content)
        (length,) = _LENGTH.unpack(self._answers.read(_LENGTH.size))
        answer: bytes = self._answers.read(length)
        return answer[5:]


def _text(text: str) -> bytes:
    """Return a compact string, shorter than 127 bytes."""
    encoded = text.encode()
    assert len(encoded) < 127, "longer ones have a length of two bytes"
    return bytes([len(encoded) + 1]) + encoded


def late_end(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Ask for the end of the last transaction again and again while the next ones are open."""
    pod = trial.active()

    def strike() -> Stroke:
        told = Counter[int]()
        with closing(Coordinator(trial.site.kafka, trial.transactional_id)) as coordinator:
            for _ in range(_ROUNDS):
                told.update(_end_late(coordinator))
        refused = told[KafkaError.PRODUCER_FENCED]
        return Stroke(pod.name, lambda: None, f"{refused} of {told.total()} refused")

    return strike


def _end_late(coordinator: Coordinator) -> list[int]:
    """Wait until a transaction has ended, and end it again some times; return the answers."""
    producer, epoch = coordinator.transaction()[1:]
    wait_until(lambda: coordinator.transaction()[1:] != (producer, epoch), LIMIT_S, "the next one")
    answers = []
    for _ in range(_ENDS):
        answers.append(coordinator.end(producer, epoch))
        time.sleep(_PAUSE_S)
    return answers
