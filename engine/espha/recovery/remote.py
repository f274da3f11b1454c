"""What other engines are asked for, over HTTP from their supervisors: snapshots, their status."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from espha.recovery.store import Header, Snapshot, SnapshotError, read_header, read_snapshot

LATEST = "/snapshot/latest"
_TIMEOUT_S = 2.0
_LOG = structlog.get_logger()


def addresses(listed: str) -> list[str]:
    """Return each `address:port` that a list `host:port,…` stands for.

    A host may stand for many, as the name of a headless Service does. What cannot be resolved
    stands for nothing.
    """
    found: dict[str, None] = {}
    for one in filter(None, map(str.strip, listed.split(","))):
        host, _, port = one.rpartition(":")
        try:
            answers = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except OSError as error:
            _LOG.warning("peers are unknown", host=host, error=error.strerror)
            continue
        for *_, (address, *_) in answers:
            found[f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"] = None
    return list(found)


def probe(address: str, before: int | None) -> Header | None:
    """Return the header of a peer's newest snapshot; None where it has none.

    Args:
        address: `host:port` of its supervisor.
        before: ask for the newest one of a lower sequence number than this.

    Raises:
        SnapshotError: what it sent is damaged.
        OSError: it does not answer within 2 s.
    """
    with _get(address, before) as response:
        return None if response is None else read_header(response)


def fetch(address: str, before: int | None) -> Snapshot | None:
    """Return a peer's newest snapshot, its checksums verified; see `probe`."""
    with _get(address, before) as response:
        return None if response is None else read_snapshot(response)


@contextmanager
def _get(address: str, before: int | None) -> Iterator[http.client.HTTPResponse | None]:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=_TIMEOUT_S)
    try:
        connection.request("GET", LATEST + (f"?before={before}" if before is not None else ""))
        response = connection.getresponse()
        if response.status not in (200, 404):
            raise SnapshotError(f"its answer is HTTP {response.status}")
        yield response if response.status == 200 else None
    except http.client.HTTPException as error:
        raise SnapshotError(f"its answer is not HTTP: {error!r}") from None
    finally:
        connection.close()


def ask_status(address: str, timeout_s: float = _TIMEOUT_S) -> dict[str, Any]:
    """Return what a supervisor says of its replica; raises what `ask` does."""
    return dict(ask(address, "GET", "/status", timeout_s=timeout_s)[1])


def ask(
    address: str,
    method: str,
    path: str,
    body: str | None = None,
    *,
    token: str = "",
    timeout_s: float = _TIMEOUT_S,
) -> tuple[int, Any]:
    """Return a supervisor's HTTP code, and the JSON that it answers with.

    Raises:
        OSError: it does not answer in time.
        HTTPException, ValueError: its answer is not HTTP, or not JSON.
    """
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout_s)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
