"""The addresses of hosts, also while the servers that know names do not answer.

`getaddrinfo` waits for these as long as the system is set to, and where a machine goes away, one of
them may go with it. Whoever watches others cannot wait: the last addresses that were known do.
"""

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Collection
from typing import NamedTuple

import structlog

_FIRST_S = 10.0
"""How long to wait for a host of which nothing is known yet."""
_SOON_S = 0.25
"""How long to wait where addresses are known."""
_KNOWN_FOR_S = 300.0
"""By then somebody else may have got an address."""
_EVERY_S = 10.0
"""How often to ask for what is kept known."""
_NOBODY = (socket.EAI_NONAME, socket.EAI_NODATA)
"""The servers say that there is no such host; any other error says nothing of it."""
_LOG = structlog.get_logger()


class _Known(NamedTuple):
    """The addresses that a host had, and when."""

    addresses: list[str]
    at: float


class Resolver:
    """Asks for each host in a thread of its own, and waits for it a moment."""

    def __init__(self) -> None:
        """Know nothing."""
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, threading.Thread] = {}
        self._kept: set[str] = set()

    def addresses(self, host: str) -> list[str]:
        """Return the addresses of a host; none where there are none, or none are known in time."""
        if _is_address(host):
            return [host]
        known = self._known.get(host)
        self._begin_to_ask(host).join(_SOON_S if known or host in self._kept else _FIRST_S)
        known = self._known.get(host)
        if known is None or time.monotonic() - known.at > _KNOWN_FOR_S:
            _LOG.warning("the name is not resolved", host=host, error="nobody answers in time")
            return []
        return known.addresses

    def keep(self, hosts: Collection[str], stop: threading.Event) -> None:
        """Ask for hosts now and then, until `stop`: what is known when it matters is young.

        Nobody waits for one of them longer than a moment, from now on.
        """
        self._kept.update(hosts)

        def ask() -> None:
            while True:
                with contextlib.suppress(RuntimeError):  # no thread is left: at the next time
                    self.refresh(hosts)
                if stop.wait(_EVERY_S):
                    return

        threading.Thread(target=ask, name="keep-known", daemon=True).start()

    def refresh(self, hosts: Collection[str]) -> None:
        """Ask for hosts now; waits for nobody."""
        for host in hosts:
            if not _is_address(host):
                self._begin_to_ask(host)

    def last_known(self, host: str) -> list[str]:
        """Return the last addresses of a host that were known, however old; waits for nobody."""
        known = self._known.get(host)
        return known.addresses if known else []

    def _begin_to_ask(self, host: str) -> threading.Thread:
        with self._lock:
            asking = self._asking.get(host)
            if asking is None:
                asking = threading.Thread(
                    target=self._ask, args=[host], name="resolver", daemon=True
                )
                asking.start()  # where no thread is left, the next one tries again
                self._asking[host] = asking
            return asking

    def _ask(self, host: str) -> None:
        found: list[str] | None = None
        try:
            answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(address) for *_, (address, *_) in answers))
        except OSError as error:
            _LOG.warning("the name is not resolved", host=host, error=error.strerror)
            if isinstance(error, socket.gaierror) and error.errno in _NOBODY:
                found = []
        finally:
            with self._lock:
                if found is not None:
                    self._known[host] = _Known(found, time.monotonic())
                del self._asking[host]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
