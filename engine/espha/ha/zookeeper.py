"""A client of ZooKeeper that finds a server that lives before its session is over."""

import contextlib
import hashlib
import hmac
import random
import selectors
import socket
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import structlog
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.handlers.utils import selector_select
from kazoo.security import ACL, OPEN_ACL_UNSAFE, make_digest_acl

from espha.protocol.http import RESOLVER, at
from espha.protocol.member import MemberInfo

_USER = "espha"
_CLOSE_S = 2.0
_PORT = 2181
_TCP = socket.IPPROTO_TCP
_POLL = SimpleNamespace(
    EVENT_READ=selectors.EVENT_READ,
    EVENT_WRITE=selectors.EVENT_WRITE,
    DefaultSelector=selectors.PollSelector,
)
_LOG = structlog.get_logger()


def client(servers: str, session_s: float, **options: Any) -> KazooClient:
    """Make a client that is not started yet.

    Args:
        servers: "host:port", several with commas.
        session_s: the session's time-out that it asks for.
        options: whatever else `KazooClient` takes.
    """
    # Kazoo asks in rounds, each in an order of its own: between the server that it lost and the
    # one that it finds, it may come by each of the others twice.
    handler = _Brisk(session_s / (2 * len(servers.split(","))))
    made = KazooClient(hosts=servers, timeout=session_s, handler=handler, **options)
    made._connection._expand_client_hosts = lambda: _expanded(made)
    return made


def _expanded(asking: KazooClient) -> list[tuple[str, str, int]]:
    """Return host, address and port of each server, in the order in which they are tried.

    Kazoo itself asks for all names, one after the other, before it connects. Where the servers that
    know names have gone with ZooKeeper's, a session is over by then: so the addresses that were
    known last serve.
    """
    found: list[tuple[str, str, int]] = []
    for host, port in asking.hosts:
        known = RESOLVER.last_known(host)
        with contextlib.suppress(OSError):
            known = known or [str(one[4][0]) for one in socket.getaddrinfo(host, port, proto=_TCP)]
        found += [(host, one, port) for one in known]
    random.shuffle(found)
    return found


def hosts(servers: str) -> list[str]:
    """Return the hosts of a list "host:port,…", which may end with a path."""
    return [host for host, _ in _places(servers)]


def located(servers: str) -> str:
    """Return the same list with the addresses that hosts had lately, as far as they are known."""
    found = [
        at(one, port or _PORT)
        for host, port in _places(servers)
        for one in RESOLVER.last_known(host) or [host]
    ]
    return ",".join(found)


def _places(servers: str) -> list[tuple[str, int]]:
    """Return hosts and ports; 0: the usual one."""
    listed = servers.partition("/")[0].split(",")
    parts = [urlsplit(f"//{one.strip()}") for one in listed if one.strip()]
    return [(part.hostname or "", part.port or 0) for part in parts]


class Secret:
    """What replicas of a deployment have in common, so that others cannot read or forge znodes."""

    def __init__(self, token: str) -> None:
        """Derive it from the deployment's token; without one, znodes are open as ever."""
        # ZooKeeper gets to see it in plain text, so it must not be the token itself.
        self._password = _derived(token, b"zookeeper") if token else ""
        self._seal = _derived(token, b"seal").encode() if token else b""

    @property
    def options(self) -> dict[str, Any]:
        """Options of a client that knows it."""
        if not self._password:
            return {}
        return {"auth_data": [("digest", f"{_USER}:{self._password}")]}

    @property
    def acl(self) -> list[ACL]:
        """Who may read and change a znode."""
        if not self._password:
            return list(OPEN_ACL_UNSAFE)
        return [make_digest_acl(_USER, self._password, all=True)]

    def sealed(self, content: bytes) -> bytes:
        """Return content that only those who know the token can have made."""
        if not self._seal:
            return content
        return _mark(self._seal, content) + b" " + content

    def opened(self, sealed: bytes) -> bytes:
        """Return what was sealed; nothing where somebody else has made it."""
        if not self._seal:
            return sealed
        mark, _, content = sealed.partition(b" ")
        return content if hmac.compare_digest(mark, _mark(self._seal, content)) else b""


def _derived(token: str, purpose: bytes) -> str:
    return hmac.new(token.encode(), purpose, hashlib.sha256).hexdigest()


def _mark(seal: bytes, content: bytes) -> bytes:
    return hmac.new(seal, content, hashlib.sha256).hexdigest().encode()


NO_SECRET = Secret("")
"""Of a deployment without a token."""


def close_session(servers: str, dead: MemberInfo, session_s: float) -> None:
    """Close a session of somebody else, by which its znode goes away.

    Args:
        servers: ZooKeeper's addresses.
        dead: whose session it is.
        session_s: its time-out.
    """
    identity = (dead.session, bytes.fromhex(dead.password))
    closing = client(servers, session_s, client_id=identity)
    try:
        closing.start(_CLOSE_S)
        _LOG.info("closed the session of a dead predecessor", predecessor=dead.name)
    except KazooTimeoutError:
        _LOG.info("a dead predecessor's session has to time out", predecessor=dead.name)
    finally:
        closing.stop()
        closing.close()


class _Brisk(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Gives up an address that does not answer within `limit_s`.

    Kazoo waits a whole session for each: behind a server whose machine is gone, it would be over
    before a server that lives is asked.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self._limit_s = limit_s

    def start(self) -> None:
        # Without room for both of its threads, kazoo forgets the one that has begun.
        try:
            super().start()
        except RuntimeError:
            self._running = True
            self.stop()
            raise

    def select(self, *args: Any, **kwargs: Any) -> Any:
        # Epoll would need a descriptor for each look; without one, a sound connection were lost.
        return selector_select(*args, **kwargs, selectors_module=_POLL)

    def create_connection(self, *args: Any, timeout: float, **kwargs: Any) -> Any:
        return super().create_connection(*args, timeout=min(timeout, self._limit_s), **kwargs)
