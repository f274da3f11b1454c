"""Answers over HTTP that come byte by byte: each part of them has to be there in time."""

import contextlib
import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from espha.adapters.formats.registry import SchemaRegistry
from espha.adapters.formats.spec import Registry
from espha.adapters.http_output.run import poster
from espha.adapters.http_output.spec import OutputHttp
from espha.adapters.poll_input.position import Seen
from espha.adapters.poll_input.run import fetcher
from espha.adapters.poll_input.spec import InputPoll
from espha.offline.outside.common import NotReached
from espha.offline.outside.web import fetch
from espha.offline.places import Places

LIMIT_S = 0.2
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
TRICKLES = {
    "status line": (HEAD.split(b"\r")[0], b" "),
    "headers": (HEAD, b"a: b\r\n"),
    "other heads": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (HEAD + b"\r\n", b"."),
    "head of a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1", b" "),
    # Of the name in the head of a file nothing can be expanded.
    "name in gzip": (
        HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"")[:3] + b"\x08" + bytes(6),
        b"n",
    ),
    "redirect": (b"HTTP/1.1 302 X\r\nLocation: /x\r\n\r\n", b"."),
}
Serve = Callable[[bytes, bytes], str]


@pytest.fixture
def trickling() -> Iterator[Serve]:
    """Start a server that begins with the first bytes at once, and then sends others slowly.

    It ends at some time; nobody has waited for that.
    """
    server, ended = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def run(first: bytes, then: bytes) -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):  # an impatient client
            connection.recv(4096)
            connection.sendall(first)
            while not ended.wait(0.05):
                connection.sendall(then)

    def started(first: bytes, then: bytes) -> str:
        threading.Thread(target=run, args=(first, then), daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    limit = threading.Timer(30.0, ended.set)
    limit.start()
    yield started
    limit.cancel()
    assert not ended.is_set()
    ended.set()
    server.close()


@pytest.fixture(params=TRICKLES)
def slow(request: pytest.FixtureRequest, trickling: Serve) -> str:
    """Return the address of a server that trickles somewhere in its answer."""
    return trickling(*TRICKLES[request.param])


def test_an_address_that_is_polled(slow: str) -> None:
    asked = fetcher(InputPoll(address=slow, timeout_s=LIMIT_S), "")
    late = r"the answer was not complete after 0.2 s \(timeoutS\)"
    with pytest.raises(OSError, match=late):
        asked(slow, Seen())


def test_a_schema_registry(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("espha.adapters.formats.registry._ANSWER_S", LIMIT_S)
    registry = SchemaRegistry(Registry(url=slow, subject="in"))
    with pytest.raises(OSError, match="is away: the answer comes too slowly"):
        registry.latest()


def test_what_espha_run_reads(slow: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("espha.offline.outside.web.SECONDS", LIMIT_S)
    with pytest.raises(NotReached, match=r"its answer was not complete after 0\.2 s"):
        fetch(slow, Places(tmp_path))


@pytest.mark.parametrize("part", ["status line", "headers", "other heads"])
def test_a_server_that_rows_are_posted_to(trickling: Serve, part: str) -> None:
    address = trickling(*TRICKLES[part])
    post = poster(OutputHttp(address=address, timeout_s=LIMIT_S), "")
    with pytest.raises(OSError, match="no answer: ReadTimeoutError"):
        post(b"x", {})


@pytest.mark.parametrize("part", ["body", "head of a chunk"])
def test_who_has_said_yes_is_not_waited_for(trickling: Serve, part: str) -> None:
    post = poster(OutputHttp(address=trickling(*TRICKLES[part]), timeout_s=LIMIT_S), "")
    post(b"x", {})
