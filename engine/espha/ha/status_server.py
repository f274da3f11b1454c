"""A supervisor's HTTP side: `/healthz`, `/readyz`, `/status` (JSON), `/metrics` (Prometheus).

An engine's supervisor also sends its newest snapshot to other engines (`GET /snapshot/latest`, with
`?before=N` the newest one of a lower sequence number), tells which ones it has (`GET /snapshots`),
and has one made (`POST /snapshot`).
`POST /switchover` makes an active engine hand over. Both, and the snapshot itself, which is all the
state there is, are for the pod itself, and for who shows the deployment's token.
"""

import hmac
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from espha.protocol.http import LATEST_SNAPSHOT, STATUS
from espha.protocol.model_change import PATH as MODEL
from espha.protocol.model_change import ModelRequest
from espha.protocol.snapshots import KEPT, SNAPSHOT, SNAPSHOTS
from espha.protocol.states import SwitchoverReason
from espha.protocol.status import ReplicaStatus, Shown, shown
from espha.protocol.switchover import PATH as SWITCHOVER
from espha.protocol.switchover import SwitchoverAnswer, SwitchoverRequest
from espha.recovery.listing import kept_snapshots
from espha.recovery.store import SnapshotError, SnapshotStore, read_header

StatusSource = Callable[[], ReplicaStatus]
HandOver = Callable[[str | None], SwitchoverAnswer]
_TEXT = "text/plain"
_JSON = "application/json"
_PATHS = b"try /healthz, /readyz, /status, /metrics, /snapshots or /snapshot/latest\n"
_COPY_BYTES = 1 << 18
_BODY_BYTES = 1000
_SNAPSHOTS_AT_ONCE = 4
"""More who ask for a snapshot at the same time are sent away."""
_TIMEOUT_S = 30
"""After so long without a byte a connection is closed."""


class Models(NamedTuple):
    """What a replica says of models, and does with them.

    Attributes:
        text: returns the XML of the model with a digest; None: it is not here.
        change: begins a change of the model.
    """

    text: Callable[[str], str | None]
    change: Callable[[ModelRequest], SwitchoverAnswer]


class _StatusCollector(Collector):
    """Makes metrics of a status, as its types say; see `espha.protocol.status.Shown`."""

    def __init__(self, source: StatusSource) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        facts = list(_facts(self._source()))
        labels = {name: str(value) for name, field, value in facts if shown(field) is Shown.LABEL}
        yield InfoMetricFamily("espha", "Name, role and state of this replica", value=labels)
        for name, field, value in facts:
            if shown(field) is Shown.GAUGE:
                yield GaugeMetricFamily(f"espha_{name}", field.description or "", float(value))
            elif shown(field) is Shown.COUNTS:
                family = GaugeMetricFamily(
                    f"espha_{name}", field.description or "", labels=["reason"]
                )
                for reason, count in value.items():
                    family.add_metric([str(reason)], float(count))
                yield family


def _facts(status: ReplicaStatus) -> Iterator[tuple[str, FieldInfo, Any]]:
    """Yield what a status says: names, what they mean, values."""
    for part in (status, status.progress):
        for name, field in type(part).model_fields.items() if part is not None else ():
            value = getattr(part, name)
            if value is not None:
                yield name, field, value


class _Server(ThreadingHTTPServer):
    """Answers from what the supervisor gives it."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        source: StatusSource,
        store: SnapshotStore | None,
        ask_snapshot: Callable[[], bool],
        *,
        hand_over: HandOver | None,
        models: "Models | None",
        token: str,
    ) -> None:
        self.source, self.store, self.ask_snapshot = source, store, ask_snapshot
        self.hand_over, self.models, self.token = hand_over, models, token
        self.sending = threading.BoundedSemaphore(_SNAPSHOTS_AT_ONCE)
        self.registry = CollectorRegistry()
        self.registry.register(_StatusCollector(source))
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has not waited for its answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Return code, type and body for a path."""
        status = self.source()
        if path == "/healthz":
            return 200, _TEXT, b"ok\n"
        if path == "/readyz":
            return (200 if status.in_sync else 503), _TEXT, f"{status.state}\n".encode()
        if path == STATUS:
            return 200, _JSON, status.model_dump_json().encode()
        if path == SNAPSHOTS:
            return 200, _JSON, KEPT.dump_json(kept_snapshots(self.store) if self.store else ())
        if path == "/metrics":
            return 200, "text/plain; version=0.0.4", generate_latest(self.registry)
        if path.startswith(f"{MODEL}/") and self.models:
            text = self.models.text(path.removeprefix(f"{MODEL}/"))
            if text is not None:
                return 200, "application/xml", text.encode()
        return 404, _TEXT, _PATHS

    def open_snapshot(self, before: int | None, model: str) -> BinaryIO | None:
        """Open the newest snapshot, of a model where one is named; None where there is none."""
        for path in self.store.of(model).files(before) if self.store else []:
            # Replaced by a newer one just now; or of another version of espha.
            with suppress(OSError, SnapshotError), path.open("rb") as file:
                read_header(file)
                return path.open("rb")
        return None


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == LATEST_SNAPSHOT and not self._may_read_state():
            self._send(403, _TEXT, b"from inside the pod, or with the deployment's token only\n")
        elif parts.path == LATEST_SNAPSHOT:
            wanted = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self._send_snapshot(wanted.get("before", ""), wanted.get("model", ""))
        else:
            self._send(*self.server.answer(parts.path))

    def do_POST(self) -> None:
        if self.path == SWITCHOVER:
            self._say(self._switch_over())
        elif self.path == MODEL:
            self._say(self._change_model())
        elif self.path != SNAPSHOT:
            self._send(404, _TEXT, b"try /snapshot, /switchover or /model\n")
        elif not self._is_local() and not self._has_token():
            self._send(403, _TEXT, b"from inside the pod, or with the deployment's token only\n")
        elif self.server.store is None:
            self._send(409, _TEXT, b"this engine has no volume for snapshots\n")
        elif self.server.ask_snapshot():
            self._send(202, _TEXT, b"asked; snapshot_sequence in /status says when it is done\n")
        else:
            self._send(503, _TEXT, b"the engine does not run\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: probes come every second."""

    def _switch_over(self) -> SwitchoverAnswer:
        body = self._body()
        if isinstance(body, SwitchoverAnswer):
            return body
        if self.server.hand_over is None:
            said = "this replica does not stand for election"
            return SwitchoverAnswer(reason=SwitchoverReason.NO_ELECTION, message=said)
        try:
            request = SwitchoverRequest.model_validate_json(body)
        except ValidationError:
            said = 'the body must be JSON: {"to": NAME}, or {"to": null} for anybody'
            return SwitchoverAnswer(reason=SwitchoverReason.MALFORMED, message=said)
        return self.server.hand_over(request.to or None)

    def _change_model(self) -> SwitchoverAnswer:
        body = self._body()
        if isinstance(body, SwitchoverAnswer):
            return body
        if self.server.models is None:
            said = "this replica runs no model"
            return SwitchoverAnswer(reason=SwitchoverReason.NOT_AN_ENGINE, message=said)
        try:
            request = ModelRequest.model_validate_json(body)
        except ValidationError:
            said = 'the body must be JSON: {"action": "shadow", "switch" or "end", "model": DIGEST}'
            return SwitchoverAnswer(reason=SwitchoverReason.MALFORMED, message=said)
        return self.server.models.change(request)

    def _body(self) -> bytes | SwitchoverAnswer:
        """Return the body of a request to hand over, or why it is refused."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _BODY_BYTES:
            said = f"the body must have at most {_BODY_BYTES} bytes"
            return SwitchoverAnswer(reason=SwitchoverReason.MALFORMED, message=said)
        body = self.rfile.read(int(length))  # also a refused one's: unread, it cuts the answer off
        if not self._is_local() and not self._has_token():
            said = "from inside the pod, or with the deployment's token only"
            return SwitchoverAnswer(reason=SwitchoverReason.FORBIDDEN, message=said)
        return body

    def _is_local(self) -> bool:
        return ip_address(self.client_address[0]).is_loopback

    def _has_token(self) -> bool:
        shown = self.headers.get("Authorization", "").encode()
        token = self.server.token
        return bool(token) and hmac.compare_digest(shown, f"Bearer {token}".encode())

    def _may_read_state(self) -> bool:
        return not self.server.token or self._is_local() or self._has_token()

    def _say(self, answer: SwitchoverAnswer) -> None:
        self._send(answer.code, _JSON, answer.model_dump_json().encode())

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self._head(code, kind, len(body))
        self.wfile.write(body)

    def _head(self, code: int, kind: str, length: int) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _send_snapshot(self, before: str, model: str) -> None:
        if not self.server.sending.acquire(blocking=False):
            self._send(503, _TEXT, b"others are being sent a snapshot\n")
            return
        try:
            self._send_newest(before, model)
        finally:
            self.server.sending.release()

    def _send_newest(self, before: str, model: str) -> None:
        file = self.server.open_snapshot(int(before) if before.isdecimal() else None, model)
        if file is None:
            self._send(404, _TEXT, b"there is no snapshot\n")
            return
        with file, suppress(ConnectionError, TimeoutError):  # one that reads the header only
            self._head(200, "application/octet-stream", os.fstat(file.fileno()).st_size)
            shutil.copyfileobj(file, self.wfile, _COPY_BYTES)


def serve_status(
    address: tuple[str, int],
    source: StatusSource,
    store: SnapshotStore | None = None,
    ask_snapshot: Callable[[], bool] = lambda: False,
    *,
    hand_over: HandOver | None = None,
    models: Models | None = None,
    token: str = "",
) -> ThreadingHTTPServer:
    """Serve on an address (host, port) from threads of its own; `shutdown()` ends it.

    Args:
        address: host and port; port 0 takes a free one.
        source: returns what `/status` shows.
        store: the engine's snapshots, where it has any.
        ask_snapshot: asks the engine for a snapshot; False: there is no engine now.
        hand_over: begins a switchover, where the replica stands for election.
        models: of an engine.
        token: what others than this pod must show for a switchover or a snapshot; empty: they
            cannot ask for the one, and anybody may read the other.

    Raises:
        SystemExit: the address is in use; the text says which.
    """
    try:
        server = _Server(
            address, source, store, ask_snapshot, hand_over=hand_over, models=models, token=token
        )
    except OSError as error:
        host, port = address
        raise SystemExit(f"espha: cannot listen on {host}:{port}: {error.strerror}") from None
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
