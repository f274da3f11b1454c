"""The webhook's HTTPS server: small requests, few at a time, answered soon or not at all.

Whatever goes wrong here is an answer that the API server takes for none, and then it stores the
object unseen (`failurePolicy: Ignore`).
"""

import asyncio
import contextlib
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aiohttp import web
from pydantic import ValidationError

from espha_operator.webhook.certificates import Certificate
from espha_operator.webhook.review import Answer, Question, Request, Response

# An object of the API server has at most 1.5 MiB, and a change comes with the old and the new one.
LARGEST = 4 * 1024 * 1024
# Seconds; the API server waits longer (`timeoutSeconds` of the chart).
ANSWER = 4.0
# Requests that are read or judged at a time: memory is LARGEST times some for each of them.
AT_ONCE = 4
HEALTH = "/healthz"

Judge = Callable[[Request], Response]


class Server:
    """Serves judges, each at a path of its own."""

    def __init__(self, judges: Mapping[str, Judge]) -> None:
        """Set it up; `serving` starts it.

        Args:
            judges: by path, with the slash in front; each is called in a thread.
        """
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._judges = judges
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="webhook")
        self._busy = 0

    def show(self, certificate: Certificate) -> None:
        """Use a certificate from the next connection on."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "certificate.pem"
            # Only a file can be loaded; nobody else may read this one, and it goes at once.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(certificate.key + certificate.chain)
            self._context.load_cert_chain(path)

    @contextlib.asynccontextmanager
    async def serving(self, host: str | None, port: int) -> AsyncIterator[int]:
        """Serve as long as the context lasts.

        Args:
            host: where to listen; all of the pod's addresses when None.
            port: 0 takes a free one.

        Yields:
            The port.

        Raises:
            OSError: the port cannot be had.
        """
        application = web.Application(client_max_size=LARGEST)
        application.router.add_get(HEALTH, self._healthy)
        application.router.add_post("/{judge:.+}", self._answer)
        runner = web.AppRunner(application, handle_signals=False, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port, ssl_context=self._context)
            await site.start()
            yield int(runner.addresses[0][1])
        finally:
            await runner.cleanup()

    async def _healthy(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _answer(self, request: web.Request) -> web.Response:
        judge = self._judges.get(request.path)
        if judge is None:
            raise web.HTTPNotFound
        if self._busy >= AT_ONCE:
            raise web.HTTPServiceUnavailable(text="too many requests at a time")
        self._busy += 1
        try:
            async with asyncio.timeout(ANSWER):
                return await self._judged(request, judge)
        except TimeoutError:
            raise web.HTTPGatewayTimeout(text=f"no answer within {ANSWER:.0f} s") from None
        finally:
            self._busy -= 1

    async def _judged(self, request: web.Request, judge: Judge) -> web.Response:
        try:
            question = Question.model_validate_json(await request.read())
        except ValidationError as error:
            raise web.HTTPBadRequest(
                text=f"no AdmissionReview: {error.errors()[0]['msg']}"
            ) from None
        loop = asyncio.get_running_loop()
        response = await loop.run_in_executor(self._threads, judge, question.request)
        answer = Answer(response=response).model_dump_json(by_alias=True, exclude_none=True)
        return web.Response(text=answer, content_type="application/json")
