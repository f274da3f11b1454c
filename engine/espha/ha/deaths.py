"""Counts engines that die in the middle of a batch, in ZooKeeper, for whoever takes over.

The count is written in the session that ends with the engine, right before its end, and not waited
for: a take-over pays nothing for it. All supervisors watch it, and tell their engines. Where
ZooKeeper is away, nothing is counted but what this supervisor knows itself, and nothing breaks.
"""

import contextlib
import threading
from typing import Any, Protocol

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from pydantic import ValidationError

from espha.ha.zookeeper import NO_SECRET, Secret
from espha.protocol.deaths import ZNODE, Deaths, UnderWay, UnderWayNote, first_death

_TIME_ALONE_FROM = 2
_LONGEST_PAUSE_S = 30.0
_FIRST_PAUSE_S = 0.3
_DOUBLED = 7
"""So often the first pause is doubled until it is the longest one."""
_ANY_VERSION = -1
_LOG = structlog.get_logger()


class Told(Protocol):
    """What is told of deaths: `espha.ha.child.Child`."""

    def tell_deaths(self, deaths: Deaths) -> None:
        """Tell it."""


class DeathRegister:
    """What a supervisor knows of deaths, over all lives of its child."""

    def __init__(
        self, name: str, root: str, note: UnderWayNote, secret: Secret = NO_SECRET
    ) -> None:
        """Count for the engine `name`.

        Args:
            name: of the engine.
            root: the znode of the election.
            note: says what is under way. What stands there already was under way when the whole
                container was killed, this supervisor's predecessor with it.
            secret: by which accounts of others are told from forged ones.
        """
        self._secret = secret
        self._name, self._path, self._note = name, f"{root.rstrip('/')}/{ZNODE}", note
        self._lock = threading.Lock()
        self._known: Deaths | None = None
        self._child: Told | None = None
        self._client: KazooClient | None = None
        self._left = note.read()
        """What was under way when this supervisor's predecessor ended together with its child."""

    def follow(self, client: KazooClient, child: Told) -> None:
        """Tell the child what is known, and what ZooKeeper says from now on, in this session."""
        with self._lock:
            self._client, self._child = client, child
            if self._known:
                child.tell_deaths(self._known)
        client.add_listener(self._state_changed)
        self._look()

    def count(self, why: str = "", wait_s: float = 0.0) -> Deaths | None:
        """Count the child's death, if it had a batch under way; logs nothing.

        Who ends the child counts first: whoever takes over knows of it then, and may close this
        session, with which all is lost that it still has to write.

        Args:
            why: why it has to end, where it does not say so itself.
            wait_s: wait so long, at most, until it is written.

        Returns what is known now, if there was anything to count; it is to be logged.
        """
        died = self._note.read()
        self._note.remove()
        if died is not None and not died.reason:
            died = died.model_copy(update={"reason": why})
        with self._lock:
            client, self._client, self._child = self._client, None, None
        return self._count(died, client, wait_s) if died is not None else None

    def _count(
        self, died: UnderWay, client: KazooClient | None, wait_s: float = 0.0
    ) -> Deaths | None:
        with self._lock:
            known = self._known
            self._known = known.with_(died, self._name) if known else first_death(died, self._name)
            deaths, child = self._known, self._child
        if deaths is known:
            return None
        if child:
            child.tell_deaths(deaths)
        if client is not None:
            with contextlib.suppress(KazooException, KazooTimeoutError):
                # In this order, and before whatever this session does next; the first one fails
                # but for the first time. The election's znode is there: somebody was elected.
                content = self._secret.sealed(deaths.encode())
                client.create_async(self._path, content)
                client.set_async(self._path, content, _ANY_VERSION).wait(wait_s)
        return deaths

    def forget(self) -> None:
        """Count nothing: the child was ended for a reason that has nothing to do with its work."""
        self._note.remove()
        with self._lock:
            self._client = self._child = None

    def pause_s(self, sequence: int) -> float:
        """Return how long to wait before the next life: time that kills must not kill often.

        Args:
            sequence: the last order record that is known; behind those deaths they are over.
        """
        deaths = self._known
        if deaths is None or deaths.records or deaths.count < _TIME_ALONE_FROM:
            return 0.0
        if sequence > deaths.after:
            return 0.0
        return float(min(_FIRST_PAUSE_S * 2 ** min(deaths.count, _DOUBLED), _LONGEST_PAUSE_S))

    def trouble(self, sequence: int) -> str:
        """Return a sentence on engines that die behind this order record; empty: they do not."""
        deaths = self._known
        if deaths is None or deaths.count < _TIME_ALONE_FROM or sequence != deaths.after:
            return ""
        place = f"{deaths.count} lives in a row have ended behind order record {deaths.after}"
        why = f" ({deaths.reason})" if deaths.reason else ""
        if not deaths.records:
            return (
                f"{place}, in a batch in which only time passes{why}: nothing can be set aside; "
                "change the model"
            )
        return f"{place}, in a batch of {deaths.records} records{why}; it is narrowed down"

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._look()

    def _look(self) -> None:
        """Ask for what stands there, and to be told when that changes."""
        client = self._client
        if client is None or not client.connected:
            return
        with contextlib.suppress(KazooException, KazooTimeoutError):
            client.get_async(self._path, self._changed).rawlink(self._read)

    def _changed(self, _event: Any) -> None:
        self._look()

    def _found(self, answer: Any) -> None:
        """Look again where it was made between two looks."""
        if answer.successful() and answer.get_nowait() is not None:
            self._look()

    def _read(self, answer: Any) -> None:
        client = self._client
        deaths: Deaths | None = None
        version: int | None = None
        try:
            content, stat = answer.get_nowait()
            version = stat.version
            deaths = Deaths.model_validate_json(self._secret.opened(content))
        except NoNodeError:
            if client is not None:
                with contextlib.suppress(KazooException, KazooTimeoutError):
                    client.exists_async(self._path, self._changed).rawlink(self._found)
        except ValidationError:
            pass
        except (KazooException, KazooTimeoutError):
            return
        with self._lock:
            known = self._known
            if deaths is not None and deaths.outranks(known):
                self._known = deaths
                if self._child:
                    self._child.tell_deaths(deaths)
            left, self._left = self._left, None
        if left is not None:
            log_death(self._count(left, client))
        elif client is not None and known is not None:
            self._write_again(client, known, deaths, version)

    def _write_again(
        self, client: KazooClient, known: Deaths, there: Deaths | None, version: int | None
    ) -> None:
        """Write what this supervisor knows, where what it wrote in an earlier session was lost.

        Args:
            client: of this session.
            known: what it knew before it looked.
            there: what stands there; None: nothing, or nothing that can be read.
            version: of the znode; None: there is none.
        """
        with contextlib.suppress(KazooException, KazooTimeoutError):
            if version is None:
                client.create_async(self._path, self._secret.sealed(known.encode()))
            elif there is not None and there.log == known.log and known.outranks(there):
                client.set_async(self._path, self._secret.sealed(known.encode()), version)


def log_death(deaths: Deaths | None) -> None:
    """Log what is known after one more death; None: there was none."""
    if deaths is not None:
        _LOG.error(
            "the engine died in the middle of a batch",
            after=deaths.after,
            records=deaths.records,
            count=deaths.count,
            reason=deaths.reason,
        )
