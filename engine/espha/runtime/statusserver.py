"""A supervisor's HTTP side: `/healthz`, `/readyz`, `/status` (JSON), `/metrics` (Prometheus)."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

StatusSource = Callable[[], dict[str, Any]]


class _StatusCollector(Collector):
    """Turns each number of a status into a gauge `espha_<name>`, each text into an info label."""

    def __init__(self, source: StatusSource) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        status = self._source()
        texts = {key: value for key, value in status.items() if isinstance(value, str)}
        texts.pop("message", None)
        yield InfoMetricFamily("espha", "Name, role and state of this replica", value=texts)
        for key, value in status.items():
            if isinstance(value, bool | int | float):
                yield GaugeMetricFamily(f"espha_{key}", f"{key} of this replica", float(value))


def serve_status(host: str, port: int, source: StatusSource) -> ThreadingHTTPServer:
    """Serve on host:port from threads of its own; `shutdown()` ends it.

    Raises:
        SystemExit: the address is in use; the text says which.
    """
    registry = CollectorRegistry()
    registry.register(_StatusCollector(source))

    def answer(path: str) -> tuple[int, str, bytes]:
        status = source()
        if path == "/healthz":
            return 200, "text/plain", b"ok\n"
        if path == "/readyz":
            ready = bool(status["in_step"])
            return (200 if ready else 503), "text/plain", f"{status['state']}\n".encode()
        if path == "/status":
            return 200, "application/json", json.dumps(status).encode()
        if path == "/metrics":
            return 200, "text/plain; version=0.0.4", generate_latest(registry)
        return 404, "text/plain", b"try /healthz, /readyz, /status or /metrics\n"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, kind, body = answer(self.path)
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent: probes come every second."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise SystemExit(f"espha: cannot listen on {host}:{port}: {error.strerror}") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
