"""Asking a broker for the controllers: what goes over the wire, and what comes back."""

import socket
import struct
import threading
import time
from contextlib import suppress

import pytest

from espha_operator.reconcile import quorum
from espha_operator.reconcile.quorum import Quorum, QuorumError, describe_quorum


def answer(voters: dict[int, int], leader: int = 1, error: int = 0, inner: int = 0) -> bytes:
    """An answer as a broker sends it, version 1 of DescribeQuorum, with a tag that nobody knows."""
    unknown = b"\x01\x07\x02ab"
    name = b"__cluster_metadata"
    listed = b"".join(
        struct.pack(">iqqq", voter, 9, when, when) + unknown for voter, when in voters.items()
    )
    partition = struct.pack(">ihiiq", 0, inner, leader, 4, 9) + bytes([len(voters) + 1]) + listed
    partition += b"\x01" + unknown
    topic = bytes([len(name) + 1]) + name + b"\x02" + partition + b"\0"
    return struct.pack(">i", 7) + b"\0" + struct.pack(">h", error) + b"\x02" + topic + b"\0"


def test_an_answer_names_the_active_controller_and_who_lags() -> None:
    told = quorum.read(answer({0: 9_000, 1: 10_000, 2: 2_000}))
    assert told == Quorum(1, {0: 9_000, 1: 10_000, 2: 2_000})
    assert told.lagging == (2,)


def test_a_controller_that_never_followed_lags() -> None:
    assert quorum.read(answer({0: -1, 1: 10_000, 2: 9_999})).lagging == (0,)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (answer({}, error=42), "error 42"),
        (answer({}, inner=29), "error 29"),
        (answer({0: 1})[:-9], "cannot be read"),
        (b"", "cannot be read"),
        (answer({})[:7] + b"\x01\0", "names no partition"),
        (answer({})[:4] + b"\x80" * 5 + b"\0", "too many bytes"),
    ],
)
def test_what_is_no_answer_says_so(wrong: bytes, why: str) -> None:
    with pytest.raises(QuorumError, match=why):
        quorum.read(wrong)


def served(*parts: bytes, pause_s: float = 0.0) -> int:
    """Return the port of a server that answers the first question with these parts."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with server, connection, suppress(OSError):  # who asks may have gone
            assert connection.recv(1000) == quorum.request()
            for part in parts:
                time.sleep(pause_s)
                connection.sendall(part)

    threading.Thread(target=serve, daemon=True).start()
    return int(server.getsockname()[1])


def test_a_broker_is_asked_over_the_network() -> None:
    body = answer({0: 1, 1: 2})
    whole = struct.pack(">i", len(body)) + body
    assert describe_quorum("127.0.0.1", served(whole[:9], whole[9:])).leader == 1


@pytest.mark.parametrize("said", [b"", b"\0\0", struct.pack(">i", 1 << 30), b"HTTP/1.1 400"])
def test_who_answers_with_something_else_says_nothing(said: bytes) -> None:
    with pytest.raises(QuorumError):
        describe_quorum("127.0.0.1", served(said))


def test_who_drips_an_answer_is_given_up() -> None:
    """Each byte comes soon enough, and all of them together do not."""
    body = answer({0: 1, 1: 2})
    whole = struct.pack(">i", len(body)) + body
    drops = [whole[at : at + 1] for at in range(len(whole))]
    port = served(*drops, pause_s=0.03)
    with pytest.raises(QuorumError, match=r"takes too long|timed out"):
        describe_quorum("127.0.0.1", port, timeout_s=1.0)


def test_who_does_not_listen_says_nothing() -> None:
    with pytest.raises(QuorumError, match="refused"):
        describe_quorum("127.0.0.1", 1)
