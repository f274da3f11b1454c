"""What a supervisor answers over HTTP."""

import http.client
import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espha.ha import status_server as statusserver
from espha.ha.status_server import serve_status
from espha.protocol.states import KillReason, SwitchoverReason
from espha.protocol.status import ReplicaStatus
from espha.protocol.switchover import SwitchoverAnswer
from support.status import engine_status
from unit.recovery.samples import store

STATUS = engine_status(
    "engine-0",
    message="all is well",
    diverged="order record 7 differs",
    snapshot_age_s=12.5,
).model_copy(update={"diverged_total": 2, "kills": {KillReason.SILENT: 3}})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server that shows STATUS."""
    server = serve_status(("127.0.0.1", 0), lambda: STATUS)
    yield server.server_port
    server.shutdown()
    server.server_close()


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_numbers_are_metrics_and_sentences_are_not(port: int) -> None:
    """A sentence as a label would make a new time series each time it changes."""
    code, text = get(port, "/metrics")
    assert code == 200
    assert "espha_diverged_total 2.0" in text
    assert "espha_snapshot_age_s 12.5" in text
    assert 'state="standby"' in text
    assert 'component="engine"' in text
    assert 'espha_kills{reason="silent"} 3.0' in text
    assert "# HELP espha_sequence The last order record processed." in text
    assert "order record 7" not in text
    assert "all is well" not in text


def test_the_status_shows_everything(port: int) -> None:
    code, text = get(port, "/status")
    assert (code, ReplicaStatus.model_validate_json(text)) == (200, STATUS)
    assert json.loads(text)["znode"] is None


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/snapshot/latest", 404),
        ("/snapshot/latest?before=x", 404),
        ("/snapshot/../../etc/passwd", 404),
        ("/", 404),
    ],
)
def test_paths(port: int, path: str, code: int) -> None:
    assert get(port, path)[0] == code


def test_an_address_in_use_is_said(port: int) -> None:
    with pytest.raises(SystemExit, match=f"cannot listen on 127.0.0.1:{port}: Address already"):
        serve_status(("127.0.0.1", port), lambda: STATUS)


TOKEN = "t0ken"  # noqa: S105 - a test's own


def wished(to: str | None) -> SwitchoverAnswer:
    return SwitchoverAnswer(
        reason=SwitchoverReason.BEGUN, message=f"to {to or 'anybody'}", active="engine-1"
    )


@pytest.fixture(scope="module")
def switching() -> Iterator[int]:
    """A server that hands over."""
    server = serve_status(("127.0.0.1", 0), lambda: STATUS, hand_over=wished, token=TOKEN)
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all connections for another machine's."""
    monkeypatch.setattr(statusserver._Handler, "_is_local", lambda self: False)


def post(port: int, body: str, *, token: str | None = None) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("POST", "/switchover", body, headers)
    answer = connection.getresponse()
    return answer.status, json.load(answer)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"to": "engine-2"}', "to engine-2"),
        ('{"to": null}', "to anybody"),
        ('{"to": ""}', "to anybody"),
        ("{}", "to anybody"),
    ],
)
def test_a_switchover_is_passed_on(switching: int, body: str, said: str) -> None:
    assert post(switching, body) == (
        202,
        {"reason": "begun", "message": said, "active": "engine-1"},
    )


@pytest.mark.parametrize(
    "body", ["", "to=x", "[]", '"x"', '{"to": 7}', '{"to": ["x"]}', "x" * 1001]
)
def test_a_bad_wish_is_refused(switching: int, body: str) -> None:
    code, told = post(switching, body)
    assert code == 400
    assert "the body must" in told["message"]


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("token", "code"), [(TOKEN, 202), (None, 403), ("", 403), (TOKEN[:-1], 403), ("t\xf6ken", 403)]
)
def test_another_machine_needs_the_token(switching: int, token: str | None, code: int) -> None:
    assert post(switching, "{}", token=token)[0] == code


@pytest.mark.usefixtures("elsewhere")
def test_without_a_token_no_other_machine_can_ask() -> None:
    """An empty token must not be one that can be shown."""
    server = serve_status(("127.0.0.1", 0), lambda: STATUS, hand_over=wished)
    assert post(server.server_port, "{}", token="")[0] == 403
    server.shutdown()
    server.server_close()


def test_who_does_not_stand_for_election_cannot_hand_over(port: int) -> None:
    assert post(port, "{}")[0] == 409


def test_only_so_many_snapshots_are_sent_at_once() -> None:
    """Each takes a file and a thread; who is sent away asks another engine, or again."""
    server = serve_status(("127.0.0.1", 0), lambda: STATUS)
    taken = [server.sending.acquire() for _ in range(4)]  # type: ignore[attr-defined]
    assert get(server.server_port, "/snapshot/latest")[0] == 503
    for _ in taken:
        server.sending.release()  # type: ignore[attr-defined]
    assert get(server.server_port, "/snapshot/latest")[0] == 404
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("token", "code"), [(TOKEN, 404), (None, 403), ("", 403), ("x", 403)])
def test_another_machine_needs_the_token_for_a_snapshot(
    switching: int, token: str | None, code: int
) -> None:
    """It is all the state there is."""
    connection = http.client.HTTPConnection("127.0.0.1", switching, timeout=5)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("GET", "/snapshot/latest?before=3", headers=headers)
    assert connection.getresponse().status == code
    assert get(switching, "/status")[0] == 200


@pytest.mark.usefixtures("elsewhere")
def test_without_a_token_snapshots_are_open(port: int) -> None:
    assert get(port, "/snapshot/latest")[0] == 404


def test_snapshots_are_listed_by_their_headers(tmp_path: Path) -> None:
    server = serve_status(("127.0.0.1", 0), lambda: STATUS, store(tmp_path, 3, 7))
    try:
        code, text = get(server.server_port, "/snapshots")
    finally:
        server.shutdown()
        server.server_close()
    assert code == 200
    assert [one["sequence"] for one in json.loads(text)] == [7, 3]


def test_a_client_that_has_not_waited_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """On a busy machine the operator and kubelets ask again; each time was a traceback."""
    gone, answered = threading.Event(), threading.Event()

    def slow() -> ReplicaStatus:
        gone.wait(10)
        return STATUS

    server = serve_status(("127.0.0.1", 0), slow)
    close = server.shutdown_request

    def closed(request: Any) -> None:
        close(request)
        answered.set()

    server.shutdown_request = closed  # type: ignore[method-assign]
    client = socket.create_connection(("127.0.0.1", server.server_port))
    client.sendall(b"GET /status HTTP/1.0\r\n\r\n")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    gone.set()
    assert answered.wait(10)
    server.shutdown()
    server.server_close()
    assert capsys.readouterr().err == ""
