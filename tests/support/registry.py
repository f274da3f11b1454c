"""A schema registry in this process, as far as adapters ask one."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Registry:
    """What it knows, and how it behaves.

    Attributes:
        schemas: by number; the text and the kind.
        subjects: numbers of each subject's schemas.
        trouble: status with which it answers everything; 0: none.
        closed: paths that it answers with 403.
        pause: seconds between two bytes of an answer.
        refuses: it takes no new schema.
        asked: method, path and Authorization of each request.
        url: its address.
    """

    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    trouble: int = 0
    closed: set[str] = field(default_factory=set)
    pause: float = 0.0
    refuses: bool = False
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    url: str = ""

    def add(self, subject: str, text: str, kind: str = "AVRO", **more: object) -> int:
        """Register a schema."""
        number = len(self.schemas) + 1
        kinds = {} if kind == "AVRO" else {"schemaType": kind}
        self.schemas[number] = {"schema": text, **kinds, **more}
        self.subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Return status and content."""
        if self.trouble:
            return self.trouble, {"error_code": self.trouble, "message": "trouble"}
        if path in self.closed:
            return 403, {"error_code": 40301, "message": "not allowed"}
        parts = path.strip("/").split("/")
        if parts[:2] == ["schemas", "ids"]:
            found = self.schemas.get(int(parts[2]))
            return (200, found) if found else (404, {"error_code": 40403, "message": "no schema"})
        if method == "POST":
            if self.refuses:
                return 409, {"error_code": 409, "message": "incompatible with an earlier schema"}
            given = json.loads(body)
            return 200, {"id": self.add(parts[1], given["schema"], given.get("schemaType", "AVRO"))}
        if parts[3:] != ["latest"] and parts[1] in self.subjects:
            place = int(parts[3]) - 1
            known = self.subjects[parts[1]]
            if not 0 <= place < len(known):
                return 404, {"error_code": 40402, "message": "no version"}
            return 200, {"id": known[place], "version": place + 1, **self.schemas[known[place]]}
        if parts[1] not in self.subjects:
            return 404, {"error_code": 40401, "message": "no subject"}
        number = self.subjects[parts[1]][-1]
        return 200, {"id": number, "subject": parts[1], "version": 1, **self.schemas[number]}


@contextlib.contextmanager
def schema_registry() -> Iterator[Registry]:
    """Run one until the end of the block."""
    known = Registry()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            known.asked.append((self.command, self.path, self.headers.get("Authorization", "")))
            status, content = known.answer(self.command, self.path, body)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if not known.pause:
                self.wfile.write(data)
                return
            with contextlib.suppress(OSError):  # whoever asked does not wait
                for byte in data:
                    self.wfile.write(bytes([byte]))
                    threading.Event().wait(known.pause)

        do_GET = do_POST = _do  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
