"""Peers' snapshots, over HTTP from their supervisors."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from espha.protocol.http import LATEST_SNAPSHOT, NoAnswerError, stream
from espha.recovery.body import Source
from espha.recovery.store import Header, Snapshot, SnapshotError, SnapshotStore, read_header


def probe(address: str, before: int | None, model: str = "", token: str = "") -> Header | None:
    """Return the header of a peer's newest snapshot; None where it has none.

    Args:
        address: `host:port` of its supervisor.
        before: ask for the newest one of a lower sequence number than this.
        model: and of the model with this digest; empty: of any.
        token: the deployment's, which is shown to it; empty: it has none.

    Raises:
        SnapshotError: what it sent is damaged, or it does not answer within 2 s.
    """
    with _get(address, before, model, token) as source:
        return None if source is None else read_header(source)


def fetch(
    address: str, before: int | None, store: SnapshotStore, model: str = "", token: str = ""
) -> Snapshot | None:
    """Keep a peer's newest snapshot in a store, its checksums verified; see `probe`.

    Raises:
        OSError: it cannot be kept.
    """
    with _get(address, before, model, token) as source:
        try:
            return None if source is None else store.take_in(source, address)
        except OSError as error:  # raised in here, it would count as the peer's
            mine = error
    raise mine


@contextmanager
def _get(address: str, before: int | None, model: str, token: str) -> Iterator[Source | None]:
    asked = {"before": before, "model": model or None}
    wanted = urlencode({name: value for name, value in asked.items() if value is not None})
    query = f"?{wanted}" if wanted else ""
    try:
        with stream(address, LATEST_SNAPSHOT + query, token=token) as (code, body):
            if code == 403:
                raise SnapshotError("it does not take this engine's token (ESPHA_TOKEN)")
            if code not in (200, 404):
                raise SnapshotError(f"its answer is HTTP {code}")
            yield body if code == 200 else None
    except NoAnswerError as error:
        raise SnapshotError(error.why) from None
