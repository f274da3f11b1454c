"""The one HTTP client: what supervisors, engines, the operator and people ask a supervisor.

An answer has a limit in time and in size, whatever the other side does; nothing is asked twice,
and no redirect is followed.
"""

import math
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol

import structlog
import urllib3
from pydantic import ValidationError
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError
from urllib3.util import parse_url

from espha.protocol import switchover
from espha.protocol.resolver import Resolver
from espha.protocol.states import SwitchoverReason
from espha.protocol.status import ReplicaStatus
from espha.protocol.switchover import SwitchoverAnswer, SwitchoverRequest

STATUS = "/status"
LATEST_SNAPSHOT = "/snapshot/latest"
TIMEOUT_S = 2.0
LARGEST_ANSWER = 1 << 20
_CHUNK = 1 << 16
RESOLVER = Resolver()
_LOG = structlog.get_logger()


class NoAnswerError(Exception):
    """A supervisor does not answer, or with something else than asked for.

    Attributes:
        why: what happened instead.
    """

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"{address} does not answer: {why}")
        self.why = why


class Answer(NamedTuple):
    """A whole answer."""

    code: int
    body: bytes


class Body(Protocol):
    """The body of an answer that is still coming."""

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end.

        Raises:
            NoAnswerError: nothing comes any more.
        """


def at(host: str, port: int) -> str:
    """Return `host:port`; an IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def addresses(listed: str) -> list[str]:
    """Return each `address:port` that a list `host:port,…` stands for.

    A host may stand for many, as the name of a headless Service does. What cannot be resolved
    stands for nothing, or for what it stood for lately, where nobody answers.
    """
    found: dict[str, None] = {}
    for one in filter(None, map(str.strip, listed.split(","))):
        host, _, port = one.rpartition(":")
        for address in RESOLVER.addresses(host):
            found[at(address, int(port))] = None
    return list(found)


@contextmanager
def stream(
    address: str,
    path: str,
    *,
    method: Literal["GET", "POST"] = "GET",
    body: bytes | None = None,
    token: str = "",
    timeout_s: float = TIMEOUT_S,
    until: float = math.inf,
) -> Iterator[tuple[int, Body]]:
    """Ask, and hand out the answer's code and its body as it comes.

    Args:
        address: `host:port`; an IPv6 address in brackets.
        path: what is asked for, with its query.
        method: HTTP's.
        body: sent along.
        token: shown to the other side; empty: none.
        timeout_s: how long connecting, and each piece of the answer, may take.
        until: when the whole answer must be there, in seconds of the monotonic clock.

    Raises:
        NoAnswerError: nobody answers in time, or not in HTTP.
    """
    place = parse_url(f"//{address}")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = urllib3.Timeout(connect=timeout_s, read=timeout_s)
    with (
        _told(address),
        _TimelyPool(place.host or "", place.port, until=until) as pool,
    ):
        response = pool.urlopen(
            method,
            path,
            body,
            headers,
            retries=False,
            redirect=False,
            timeout=timeout,
            preload_content=False,
            decode_content=False,
        )
        with response:
            yield response.status, _Body(address, response)


def ask(
    address: str,
    path: str,
    *,
    method: Literal["GET", "POST"] = "GET",
    body: bytes | None = None,
    token: str = "",
    timeout_s: float = TIMEOUT_S,
    largest: int = LARGEST_ANSWER,
) -> Answer:
    """Ask, and return the whole answer, which has at most `largest` bytes; see `stream`.

    Raises:
        NoAnswerError: also when the answer is too large, or is not whole after `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    coming = stream(
        address, path, method=method, body=body, token=token, timeout_s=timeout_s, until=until
    )
    whole = bytearray()
    try:
        with coming as (code, pieces):
            while part := pieces.read(_CHUNK):
                whole += part
                if len(whole) > largest:
                    raise NoAnswerError(address, f"the answer has more than {largest} bytes")
    except NoAnswerError as error:
        if time.monotonic() < until:
            raise
        late = f"the answer takes longer than {timeout_s:g} s"
        raise NoAnswerError(address, late) from error
    return Answer(code, bytes(whole))


def ask_status(
    address: str, timeout_s: float = TIMEOUT_S, largest: int = LARGEST_ANSWER
) -> ReplicaStatus:
    """Return what a supervisor says of its replica, in at most so many bytes.

    Raises:
        NoAnswerError: it does not answer, or not with a status.
    """
    answer = ask(address, STATUS, timeout_s=timeout_s, largest=largest)
    try:
        return ReplicaStatus.model_validate_json(answer.body)
    except ValidationError as error:
        raise NoAnswerError(address, f"not a status ({error.error_count()} errors)") from None


def ask_switchover(
    address: str, to: str | None, token: str, timeout_s: float = TIMEOUT_S
) -> SwitchoverAnswer:
    """Ask a supervisor to hand over to `to` (None: to the next in line).

    Raises:
        NoAnswerError: it does not answer, or with something that is neither yes nor no.
    """
    request = SwitchoverRequest(to=to).model_dump_json().encode()
    answer = ask(
        address, switchover.PATH, method="POST", body=request, token=token, timeout_s=timeout_s
    )
    try:
        return SwitchoverAnswer.model_validate_json(answer.body)
    except ValidationError:
        said = answer.body.decode(errors="replace").strip()[:200]
        if 400 <= answer.code < 500:  # one of another version, or somebody else
            return SwitchoverAnswer(reason=SwitchoverReason.NOT_OFFERED, message=said)
        raise NoAnswerError(address, f"HTTP {answer.code}: {said}") from None


class _TimelySocket(socket.socket):
    """A socket on which nothing comes after a certain moment, however slowly it comes."""

    until = math.inf

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """Receive; http.client reads heads and bodies through this."""
        if self.until < math.inf:
            left = self.until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the answer takes too long")
            self.settimeout(min(left, self.gettimeout() or left))
        return super().recv_into(*args, **kwargs)


class _TimelyConnection(HTTPConnection):
    """A connection with such a socket."""

    def __init__(self, *args: Any, until: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._until = until

    def _new_conn(self) -> socket.socket:
        plain = super()._new_conn()
        timeout = plain.gettimeout()
        timely = _TimelySocket(plain.family, plain.type, plain.proto, plain.detach())
        timely.settimeout(timeout)
        timely.until = self._until
        return timely


class _TimelyPool(urllib3.HTTPConnectionPool):
    """Makes such connections."""

    ConnectionCls = _TimelyConnection


class _Body:
    def __init__(self, address: str, response: urllib3.BaseHTTPResponse) -> None:
        self._address, self._response = address, response

    def read(self, size: int) -> bytes:
        """See `Body`."""
        with _told(self._address):
            # read() would wait until it has all of them, however slowly they come.
            return self._response.read1(size)


@contextmanager
def _told(address: str) -> Iterator[None]:
    try:
        yield
    except (HTTPError, OSError) as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise NoAnswerError(address, str(cause)) from None
