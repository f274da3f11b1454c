"""Publishes the contents of addresses, each new one once.

A content is new when its bytes differ from those that were published last. The rows of one are one
transaction, and the last of them knows what was seen: the server's name of it (ETag), when it was
changed, and a digest. So whoever takes over asks for what is newer.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import urllib3
from urllib3.exceptions import HTTPError, ReadTimeoutError

from espha.adapters.answers import asker, read_body
from espha.adapters.config import ConfigError, Held, Job
from espha.adapters.formats.incoming import incoming, topic_form
from espha.adapters.formats.mapped import mapped, read_configuration
from espha.adapters.poll_input.position import Position, Seen, short
from espha.adapters.poll_input.spec import InputPoll
from espha.adapters.publishing import publish
from espha.adapters.secrets import authorization_header
from espha.backoff import Backoff
from espha.model import Window
from espha.model.xml import text_of
from espha.protocol.status import Lag

_SHOWN: Final = 200
_MOST_ADDRESSES: Final = 20

Records = Callable[[bytes, str], list[bytes]]
"""Makes records of a content; the text says where it is from."""


class Answer(NamedTuple):
    """What an address has answered, and what to remember of it."""

    content: bytes
    seen: Seen


Fetch = Callable[[str, Seen], Answer | None]
"""Asks an address; None: it has what was seen. Raises OSError where it does not answer well."""


@dataclass(slots=True)
class Page:
    """An address that is asked.

    Attributes:
        address: the address.
        records: makes records of its contents.
        due: when it is asked again.
        trouble: what was wrong the last time; empty: nothing.
    """

    address: str
    records: Records
    due: float = 0.0
    trouble: str = ""
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def key(self) -> str:
        """What it is called in positions."""
        return short(self.address.encode())[:12]


def run(job: Job, given: InputPoll) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    made = pages(job.window, given)
    fetch = fetcher(given, authorization_header())
    publish(job, lambda found: Polled(made, given, Position.of(job.name, found), fetch))


def pages(window: Window, given: InputPoll) -> Sequence[Page]:
    """Return the addresses to ask.

    Raises:
        ConfigError: the configuration cannot be read, or names no address.
    """
    if given.address is not None:
        made = incoming(window, given.format)
        return [Page(given.address, made.records)]
    assert given.configuration is not None  # noqa: S101 - one of the two is given
    root = read_configuration(given.configuration, given.properties)
    form = topic_form(window)
    found = [
        Page(text_of(request.find("url")), mapped(publisher, window, form))
        for publisher in list(root.iter("url-publisher")) or [root]
        for request in publisher.iter("request")
    ]
    wrong = [one.address for one in found if not one.address.startswith(("http://", "https://"))]
    if wrong or not 0 < len(found) <= _MOST_ADDRESSES:
        why = f"{wrong[0][:_SHOWN]!r} is none of http or https" if wrong else f"{len(found)}"
        raise ConfigError(
            f"{given.configuration}: give 1 to {_MOST_ADDRESSES} requests with a url: {why}"
        )
    return found


def fetcher(given: InputPoll, authorization: str) -> Fetch:
    """Return what asks an address, within the bounds of the settings."""
    pool, timeout = asker(), urllib3.Timeout(total=given.timeout_s)
    retries = urllib3.Retry(total=3, connect=0, read=0, redirect=3, status=0, other=0)
    always = {"Authorization": authorization} if authorization else {}

    def fetch(address: str, seen: Seen) -> Answer | None:
        known = {"If-None-Match": seen.etag, "If-Modified-Since": seen.modified}
        headers = {**always, **{name: value for name, value in known.items() if value}}
        try:
            answer = pool.request(
                "GET",
                address,
                headers={**headers, "Accept-Encoding": "gzip"},
                timeout=timeout,
                retries=retries,
                preload_content=False,
            )
            try:
                return _read(answer, given)
            finally:
                answer.close()  # however long the rest is, and however slowly it comes
        except (HTTPError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, ReadTimeoutError):
                late = f"the answer was not complete after {given.timeout_s:g} s (timeoutS)"
                raise OSError(late) from None
            raise OSError(f"no answer: {type(reason).__name__}") from None

    return fetch


def _read(answer: urllib3.BaseHTTPResponse, given: InputPoll) -> Answer | None:
    if answer.status == 304:
        return None
    if answer.status != 200:
        raise OSError(f"answered with HTTP {answer.status}")
    content = read_body(answer, given.max_bytes)
    if content is None:
        raise OSError(f"the content has more than {given.max_bytes} bytes (maxBytes)")
    etag, modified = (answer.headers.get(name, "") for name in ("ETag", "Last-Modified"))
    return Answer(content, Seen.of(etag, modified, content))


class Polled:
    """The contents of addresses; see `espha.adapters.publishing.Source`."""

    def __init__(
        self,
        asked: Sequence[Page],
        given: InputPoll,
        position: Position,
        fetch: Fetch,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Go on behind a position; nobody is asked before the first poll."""
        more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
        self.name = f"{asked[0].address.partition('?')[0]}{more}"
        self._pages, self._interval = asked, given.interval_s
        self._position, self._fetch, self._now = position, fetch, now

    @property
    def position(self) -> Position:
        """Behind the last content."""
        return self._position

    def poll(self) -> Sequence[tuple[bytes, Position]]:
        """Ask one address that is due; see `espha.adapters.publishing.Source`."""
        now = self._now()
        page = next((one for one in self._pages if one.due <= now), None)
        found = [] if page is None else self._asked(page)
        trouble = next((one for one in self._pages if one.trouble), None)
        if not found and trouble is not None:
            raise Held(f"{trouble.address.partition('?')[0]}: {trouble.trouble}; asking again")
        return found

    def _asked(self, page: Page) -> list[tuple[bytes, Position]]:
        known = self._position.seen.get(page.key, Seen())
        try:
            answer = self._fetch(page.address, known)
        except OSError as error:
            page.trouble = f"{error.strerror or error}"
            page.due = self._now() + min(page.backoff.next(), self._interval)
            return []
        page.trouble, page.due = "", self._now() + self._interval
        page.backoff.reset()
        if answer is None:
            return []
        self._position = self._position.with_seen(page.key, answer.seen)
        if answer.seen.digest == known.digest:
            return []
        rows = page.records(answer.content, page.address.partition("?")[0])
        if not rows:
            return []
        self._position = self._position.after(len(rows))
        bare = self._position.bare()  # none of the rows is in a transaction without the last one
        return [*((row, bare) for row in rows[:-1]), (rows[-1], self._position)]

    def advance(self, position: Mapping[str, Any]) -> None:
        """Go to a position; see `espha.adapters.publishing.Source`."""
        self._position = Position.of(self._position.adapter, position)

    def behind(self) -> Lag | None:
        """Nobody knows what an address would answer."""
        return None

    def committed(self) -> None:
        """Nobody waits for it."""

    def close(self) -> None:
        """There is nothing open."""
