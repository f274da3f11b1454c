"""How the operator asks a supervisor for its status."""

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
