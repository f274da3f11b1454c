"""How the operator asks pods: whatever they say, and however slowly, it goes on."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha_operator.reconcile import observe
from support.status import engine_status

POD = observe.Pod("e", "engine", "127.0.0.1", None)


class _Supervisor(BaseHTTPRequestHandler):
    answer = b""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200 if self.path == "/status" else 404)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Supervisor]]:
    """A supervisor on the port that the operator asks."""
    server = HTTPServer(("127.0.0.1", 0), _Supervisor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(observe, "HTTP_PORT", server.server_port)
    yield _Supervisor
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "status",
    [
        ReplicaStatus(name="e"),
        engine_status("e", sequence=9, epoch=2, snapshot_age_s=0.0),
        engine_status("e", EngineState.DIVERGED, in_sync=False, message="m", diverged="record 9"),
    ],
)
def test_a_status_arrives_as_it_was_shown(
    supervisor: type[_Supervisor], status: ReplicaStatus
) -> None:
    supervisor.answer = status.model_dump_json().encode()
    assert observe.ask_engine(POD) == status


@pytest.mark.parametrize(
    "answer", [b"", b"{}", b"[]", b"x", ReplicaStatus(name="another").model_dump_json().encode()]
)
def test_what_is_not_the_pods_status_counts_as_none(
    supervisor: type[_Supervisor], answer: bytes
) -> None:
    """An address may have gone to another pod since it was looked up."""
    supervisor.answer = answer
    assert observe.ask_engine(POD) is None


def test_who_does_not_answer_has_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "HTTP_PORT", 1)
    assert observe.ask_engine(POD) is None


@pytest.fixture
def drip(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """A pod that says something, then the next thing again and again, a piece at a time."""
    said: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
                connection.sendall(said[0])
                while not ended.wait(0.02):
                    connection.sendall(said[1])
            except OSError:
                continue

    port = listening.getsockname()[1]
    monkeypatch.setattr(observe, "HTTP_PORT", port)
    monkeypatch.setattr(observe, "ZOOKEEPER_PORT", port)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield said
    ended.set()
    listening.close()
    thread.join(5)


DRIPS = {
    "status line": [b"HTTP/1.1 200 OK", b" "],
    "headers": [b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"],
    "body": [b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b" "],
    "chunks": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n"],
    "flood": [b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", b" " * (1 << 20)],
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("said", DRIPS.values(), ids=DRIPS.keys())
def test_an_answer_that_never_ends_is_given_up(drip: list[bytes], said: list[bytes]) -> None:
    drip += said
    assert observe.ask_engine(POD) is None


@pytest.mark.timeout(60)
@pytest.mark.parametrize("said", [[b"", b"x"], [b"Mode: ", b"x" * 4096]], ids=["drips", "floods"])
def test_a_zookeeper_server_whose_answer_never_ends_serves_not(
    drip: list[bytes], said: list[bytes]
) -> None:
    drip += said
    assert not observe.ask_zookeeper(POD)
    assert not observe.four_letters(POD.address, "dirs", observe.ANSWER)


def test_a_long_sentence_is_cut(supervisor: type[_Supervisor]) -> None:
    """It would become part of the resource's status, again and again."""
    supervisor.answer = engine_status("e", message="m" * 9999).model_dump_json().encode()
    answer = observe.ask_engine(POD)
    assert answer is not None
    assert len(answer.message) == observe.SENTENCE
