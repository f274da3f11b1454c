"""Posts what a window publishes to a server.

Before a request is sent, its first and its last record are kept on the topic of positions. Whoever
goes on after a kill sends the very same request once more, under the same id, before anything else.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import urllib3
from urllib3.exceptions import HTTPError

from espha.adapters.acknowledged import KeptOffset
from espha.adapters.answers import asker
from espha.adapters.config import Job
from espha.adapters.copying import Taken, copy
from espha.adapters.formats.outgoing import Outgoing, outgoing
from espha.adapters.http_output.spec import OutputHttp
from espha.adapters.output_records import Rejected
from espha.adapters.secrets import authorization_header
from espha.protocol.status import OutputProgress

_CONNECT_S: Final = 10.0
_SHOWN: Final = 300
_TYPES: Final = {"csv": "text/csv", "json": "application/x-ndjson"}

Post = Callable[[bytes, Mapping[str, str]], None]
"""Posts a body with headers; raises OSError where it was not taken."""


def run(job: Job, given: OutputHttp) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    made = outgoing(job.window, given.format)
    post = poster(given, authorization_header())
    copy(
        job,
        given.address,
        lambda identity: Output(given, made, job.topic, KeptOffset(job, identity), post),
    )


def poster(given: OutputHttp, authorization: str) -> Post:
    """Return what posts to the address of the settings."""
    pool = asker(maxsize=1)
    timeout = urllib3.Timeout(connect=_CONNECT_S, read=given.timeout_s)
    always = {"Authorization": authorization} if authorization else {}

    def post(body: bytes, headers: Mapping[str, str]) -> None:
        try:
            answer = pool.request(
                "POST",
                given.address,
                body=body,
                headers={**headers, **always},
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (HTTPError, ValueError) as error:  # a ValueError says a whole header
            raise OSError(f"no answer: {type(error).__name__}") from None
        said = _said(answer)
        if not 200 <= answer.status < 300:
            raise OSError(f"answered with HTTP {answer.status}: {said}")

    return post


def _said(answer: urllib3.BaseHTTPResponse) -> str:
    """Return how the text of an answer begins, if it can be read, and let the connection go.

    What counts is the status: who has said yes has the rows, whatever becomes of the text.
    """
    said = b""
    with contextlib.suppress(HTTPError):
        said = answer.read1(_SHOWN, decode_content=False)
    if answer.length_remaining == 0:
        answer.release_conn()
    else:
        answer.close()  # however long the rest is, and however slowly it comes
    return said.decode(errors="replace").strip()


class Output:
    """Rows in requests; see `espha.adapters.copying.Target`."""

    def __init__(
        self, given: OutputHttp, made: Outgoing, topic: str, kept: KeptOffset, post: Post
    ) -> None:
        """Go on behind what was acknowledged.

        Args:
            given: the settings.
            made: makes payloads of records.
            topic: whose records they are.
            kept: the position.
            post: posts.
        """
        self._given, self._made, self._topic = given, made, topic
        self._kept, self._post = kept, post
        self._pending: list[Taken] = []
        self._reached = kept.now.offset
        self._rejected = 0

    @property
    def offset(self) -> int:
        """Offset of the first record that was not acknowledged."""
        return self._kept.now.offset

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Send the records; see `espha.adapters.copying.Target`."""
        self._pending += [record for record in records if record.offset >= self._reached]
        self._reached = max(self._reached, offset)
        self.settle()

    def settle(self) -> None:
        """Send what is there; see `espha.adapters.copying.Target`."""
        while self._pending:
            now = self._kept.now
            if now.until <= now.offset:
                self._kept.keep(now.offset, self._end())
                now = self._kept.now
            if self._reached < now.until:
                return  # the rest of what may have been sent already is still to come
            batch = [record for record in self._pending if record.offset < now.until]
            if batch:
                self._send(batch, now.offset, now.until)
            self._pending = self._pending[len(batch) :]
            self._kept.keep(now.until, self._end() if self._pending else 0)

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows; see `espha.adapters.copying.Target`."""
        written = rows - len(self._pending) - self._rejected
        return OutputProgress(rows=written, rejected=self._rejected, offset=self.offset)

    def _end(self) -> int:
        most = min(len(self._pending), self._given.max_rows)
        return self._pending[most - 1].offset + 1

    def _send(self, batch: Sequence[Taken], first: int, until: int) -> None:
        rejected, lines = 0, []
        for record in batch:
            made = self._made.payload(record)
            rejected += isinstance(made, Rejected)
            lines.append(made.line() if isinstance(made, Rejected) else made)
        headers = {
            "Content-Type": _TYPES[self._given.format.type],
            "Idempotency-Key": f"{self._kept.now.topic_id}-{first}-{until}",
            "Espha-Topic": self._topic,
            "Espha-Offsets": f"{batch[0].offset}-{batch[-1].offset}",
        }
        self._post(b"".join(line + b"\n" for line in lines), headers)
        self._rejected += rejected
