"""What a supervisor answers over HTTP."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from espha.runtime.statusserver import serve_status

STATUS: dict[str, Any] = {
    "state": "standby",
    "in_step": True,
    "message": "all is well",
    "diverged": "order record 7 differs",
    "diverged_total": 2,
    "snapshot_age_s": 12.5,
    "znode": None,
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server that shows STATUS."""
    server = serve_status(("127.0.0.1", 0), lambda: dict(STATUS))
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
    assert "order record 7" not in text
    assert "all is well" not in text


def test_the_status_shows_everything(port: int) -> None:
    code, text = get(port, "/status")
    assert (code, json.loads(text)) == (200, STATUS)


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
        serve_status(("127.0.0.1", port), dict)
