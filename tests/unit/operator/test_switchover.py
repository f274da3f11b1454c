"""Wishes for a switchover: what they come to, and how the active engine is asked."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from espha_operator.reconcile import switchover
from espha_operator.status.facts import Facts
from espha_operator.status.switchover import Decision, decide
from unit.operator.samples import healthy


def without_step(*names: str) -> Facts:
    facts = healthy()
    engines = tuple(
        one.model_copy(update={"in_sync": one.name not in names}) for one in facts.engines
    )
    return facts.replace(engines=engines)


@pytest.mark.parametrize(
    ("wish", "facts", "action", "to"),
    [
        ("demo-engine-1", healthy(engines=()), "wait", ""),
        ("any", healthy(engines=()), "wait", ""),
        ("any", healthy(), "name", "demo-engine-0"),
        ("any", without_step("demo-engine-0"), "name", "demo-engine-2"),
        ("any", without_step("demo-engine-0", "demo-engine-2"), "refused", ""),
        ("demo-engine-1", healthy(), "done", "demo-engine-1"),
        ("demo-engine-0", healthy(), "ask", "demo-engine-0"),
        ("demo-engine-0", without_step("demo-engine-0"), "refused", "demo-engine-0"),
        ("demo-engine-9", healthy(), "refused", "demo-engine-9"),
        ("", healthy(), "refused", ""),
    ],
)
def test_decisions(wish: str, facts: Facts, action: str, to: str) -> None:
    decision = decide(wish, facts)
    assert (decision.action, decision.to) == (action, to)
    assert bool(decision.message) == (action in ("done", "refused"))


REFUSED = "The active engine refuses: no."


class _Supervisor(BaseHTTPRequestHandler):
    """Answers with a code and a body, and keeps what it was asked."""

    answer = (202, b"{}")
    asked: tuple[str, str | None, object] | None = None

    def do_POST(self) -> None:
        """Answer."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked = (self.path, self.headers["Authorization"], body)
        code, text = self.answer
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@pytest.fixture(scope="module")
def supervisor() -> Iterator[type[_Supervisor]]:
    """A supervisor on the port that the operator asks."""
    server = HTTPServer(("127.0.0.1", 0), _Supervisor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    patch = pytest.MonkeyPatch()
    patch.setattr(switchover, "HTTP_PORT", server.server_port)
    yield _Supervisor
    patch.undo()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("code", "body", "action", "message"),
    [
        (202, b'{"reason": "begun", "message": "begun"}', "ask", ""),
        (200, b'{"reason": "already-active", "message": "it is"}', "ask", ""),
        (403, b'{"reason": "forbidden", "message": "no"}', "refused", REFUSED),
        (409, b'{"reason": "no-candidate", "message": "no"}', "refused", REFUSED),
        (503, b'{"reason": "zookeeper", "message": "later"}', "wait", ""),
        (404, b"try /snapshot", "refused", "The active engine refuses: try /snapshot."),
        (409, b"[]", "refused", "The active engine refuses: []."),
        (500, b"oops", "wait", ""),
    ],
)
def test_answers(
    supervisor: type[_Supervisor], code: int, body: bytes, action: str, message: str
) -> None:
    supervisor.answer = (code, body)
    expected = Decision(action, "e", message, locked=code == 403)  # type: ignore[arg-type]
    assert switchover.ask("127.0.0.1", "e", "t0ken") == expected
    assert supervisor.asked == ("/switchover", "Bearer t0ken", {"to": "e"})


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchover, "HTTP_PORT", 1)
    assert switchover.ask("127.0.0.1", "e", "t0ken").action == "wait"
