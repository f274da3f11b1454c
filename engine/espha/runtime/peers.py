"""Snapshots of other engines, over HTTP from their supervisors."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager

from espha.runtime.snapshots import Header, Snapshot, SnapshotError, read_header, read_snapshot

LATEST = "/snapshot/latest"
_TIMEOUT_S = 2.0


def addresses(listed: str, own_name: str) -> list[str]:
    """Return the `host:port` of a list `host:port,…`, without that of this engine."""
    every = [one.strip() for one in listed.split(",") if one.strip()]
    return [one for one in every if one.split(":")[0].split(".")[0] != own_name]


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
