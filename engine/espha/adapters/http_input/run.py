"""Publishes the rows of bodies that others post."""

import asyncio
import hmac
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from aiohttp import web

from espha.adapters.config import Job
from espha.adapters.formats.incoming import incoming
from espha.adapters.http_input.spec import InputHttp
from espha.adapters.publishing import publish
from espha.adapters.receiving import Intake, Parcel, listening
from espha.adapters.remembered import Position, RememberingReceiver, digest
from espha.adapters.secrets import AUTHORIZATION, secret

_BODY_S: Final = 30.0
"""A body has to come in so many seconds."""
_COMMIT_S: Final = 30.0
"""Who has waited so long for a commit is told to come again."""
_CONNECTIONS: Final = 200
_ID_HEADER: Final = "Idempotency-Key"
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="espha"'}
_RETRY: Final = {"Retry-After": "1"}


def run(job: Job, given: InputHttp) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    made = incoming(job.window, given.format)

    def records(body: bytes, where: str) -> list[bytes]:
        return made.records(body, where)

    known = secret(AUTHORIZATION)
    publish(job, lambda found: Posts(given, records, Position.of(job.name, found), job.host, known))


class Posts(RememberingReceiver[Position]):
    """The rows of requests."""

    def __init__(
        self, given: InputHttp, records: Any, position: Position, host: str, authorization: str = ""
    ) -> None:
        """Take what is posted.

        Args:
            given: the settings.
            records: makes records of a body; see `espha.adapters.formats`.
            position: where to go on.
            host: address to listen on.
            authorization: what the header Authorization has to be; empty: it may be anything.
        """
        super().__init__(f"http port {given.port}", position, host, given.ids)
        self._authorization = authorization.encode()
        self._given, self._records = given, records

    async def serve(self, intake: Intake[str]) -> None:
        """See `Receiver`."""
        app = web.Application(client_max_size=self._given.max_bytes)
        app.router.add_route("*", "/{path:.*}", partial(self._answer, intake))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        server = runner.server
        if server is None:
            raise OSError("the server has not started")

        def connected() -> asyncio.BaseProtocol:
            # Each connection takes memory, also one on which nothing comes.
            full = len(server.connections) >= _CONNECTIONS
            made: asyncio.BaseProtocol = _Refusal() if full else server()
            return made

        loop = asyncio.get_running_loop()
        with listening(self.host, self._given.port) as bound:
            listener = await loop.create_server(connected, sock=bound)
            self.trouble = ""
            try:
                await listener.serve_forever()
            finally:
                listener.close()
                await runner.cleanup()

    async def _answer(self, intake: Intake[str], request: web.Request) -> web.Response:
        if request.method != "POST":
            return _say(405, "POST rows here", {"Allow": "POST"})
        if not self._may_post(request):
            return _say(401, "the header Authorization is missing or wrong", _CHALLENGE)
        most = self._given.max_bytes
        if (request.content_length or 0) > most:
            return _say(413, f"the body has more than {most} bytes")
        plain = request.content_length is not None and "Content-Encoding" not in request.headers
        size = request.content_length or 0 if plain else most
        if not intake.reserve(size):
            return _say(429, "too much waits to be committed; send it again", _RETRY)
        try:
            parcel = await self._parcel(request, size)
        except BaseException:
            intake.release(size)
            raise
        if isinstance(parcel, web.Response) or not parcel.rows:
            intake.release(size)
            return parcel if isinstance(parcel, web.Response) else _told(parcel)
        done = asyncio.Event()
        parcel.done = done.set
        intake.put(parcel)
        try:
            await asyncio.wait_for(done.wait(), _COMMIT_S)
        except TimeoutError:
            said = f"not committed yet; send it again, best with the same {_ID_HEADER}"
            return _say(503, said, _RETRY)
        return _told(parcel)

    def _may_post(self, request: web.Request) -> bool:
        said = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        return not self._authorization or hmac.compare_digest(said, self._authorization)

    async def _parcel(self, request: web.Request, size: int) -> Parcel[str] | web.Response:
        try:
            body = await asyncio.wait_for(request.read(), _BODY_S)
        except TimeoutError:
            return _say(408, f"the body was not there after {_BODY_S:g} s")
        except web.HTTPRequestEntityTooLarge:
            return _say(413, f"the body has more than {self._given.max_bytes} bytes")
        except (web.RequestPayloadError, ValueError):
            return _say(400, "the body cannot be read")
        given = request.headers.get(_ID_HEADER, "")
        try:
            rows = await asyncio.to_thread(self._records, body, self._where(given))
        except OSError as error:
            return _say(503, f"{error.strerror or error}; send it again", _RETRY)
        return Parcel(rows, size, digest(given) if given else "")

    def _where(self, given: str) -> str:
        return f"{self.name}, {_ID_HEADER} {given[:100]}" if given else self.name


class _Refusal(asyncio.Protocol):
    """For a connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            transport.write(_TOO_MANY)
            transport.close()


def _told(parcel: Parcel[str]) -> web.Response:
    return web.json_response({"rows": len(parcel.rows), "repeated": parcel.repeated})


def _say(code: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=code, text=f"{text}\n", headers=headers)
