"""The one HTTP client: what supervisors, engines, the operator and people ask a supervisor.

An answer has a limit in time and in size, whatever the other side does; nothing is asked twice,
and no redirect is followed.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, Protocol

import structlog
import urllib3
from pydantic import ValidationError
from urllib3.exceptions import HTTPError
from urllib3.util import parse_url

from espha.protocol import switchover
from espha.protocol.states import SwitchoverReason
from espha.protocol.status import ReplicaStatus
from espha.protocol.switchover import SwitchoverAnswer, SwitchoverRequest

STATUS = "/status"
LATEST_SNAPSHOT = "/snapshot/latest"
TIMEOUT_S = 2.0
_LARGEST_ANSWER = 1 << 20
_CHUNK = 1 << 16
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
    stands for nothing.
    """
    found: dict[str, None] = {}
    for one in filter(None, map(str.strip, listed.split(","))):
        host, _, port = one.rpartition(":")
        try:
            answers = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except OSError as error:
            _LOG.warning("peers are unknown", host=host, error=error.strerror)
            continue
        for *_, (address, *_) in answers:
            found[at(str(address), int(port))] = None
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
) -> Iterator[tuple[int, Body]]:
    """Ask, and hand out the answer's code and its body as it comes.

    Args:
        address: `host:port`; an IPv6 address in brackets.
        path: what is asked for, with its query.
        method: HTTP's.
        body: sent along.
        token: shown to the other side; empty: none.
        timeout_s: how long connecting, and each piece of the answer, may take.

    Raises:
        NoAnswerError: nobody answers in time, or not in HTTP.
    """
    place = parse_url(f"//{address}")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = urllib3.Timeout(connect=timeout_s, read=timeout_s)
    with _told(address), urllib3.HTTPConnectionPool(place.host or "", place.port) as pool:
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
) -> Answer:
    """Ask, and return the whole answer, which has at most 1 MiB; see `stream`.

    Raises:
        NoAnswerError: also when the answer is too large, or is not whole after `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    with stream(address, path, method=method, body=body, token=token, timeout_s=timeout_s) as (
        code,
        coming,
    ):
        whole = bytearray()
        while part := coming.read(_CHUNK):
            whole += part
            if len(whole) > _LARGEST_ANSWER:
                raise NoAnswerError(address, f"the answer has more than {_LARGEST_ANSWER} bytes")
            if time.monotonic() > until:
                raise NoAnswerError(address, f"the answer takes longer than {timeout_s:g} s")
    return Answer(code, bytes(whole))


def ask_status(address: str, timeout_s: float = TIMEOUT_S) -> ReplicaStatus:
    """Return what a supervisor says of its replica.

    Raises:
        NoAnswerError: it does not answer, or not with a status.
    """
    answer = ask(address, STATUS, timeout_s=timeout_s)
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
