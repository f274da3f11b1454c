"""Election by ephemeral sequential znodes: each waits for the znode before its own to go.

Each also watches the processes of all that stand before it (`espha.ha.ahead`). When these are dead
it leads at once, and ZooKeeper learns it afterwards.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry
from pydantic import ValidationError

from espha.ha import zookeeper
from espha.ha.ahead import Ahead
from espha.protocol.http import RESOLVER
from espha.protocol.member import MemberInfo

ZNODE_PREFIX = "server-n_"
NEXT = "next"
"""Znode beside them, while a switchover asks for one engine: its name."""
_RECHECK_S = 1.0
_RETRY_S = 0.1
_CLOSE_S = 3.0
_REFRESH_S = 0.5
_LOG = structlog.get_logger()


class Membership:
    """One stay in the election: a session, its znode, and a watch on those before it.

    `on_elected` is called, from the election's own threads, when the znode is the lowest, or when
    all that stand before are dead and `succeeds` allows it; once, and again after `requeue`. Errors
    never end a membership; after a lost session it makes a new znode by itself.
    """

    def __init__(
        self,
        servers: str,
        root: str,
        name: str,
        session_ms: int,
        on_elected: Callable[[], None],
        *,
        address: str = "",
        failure_timeout_ms: int = 500,
        token: str = "",
        succeeds: Callable[[list[str]], bool] = lambda dead: False,
        ready: Callable[[], bool] = lambda: True,
        on_doubt: Callable[[], None] = lambda: None,
        woke_at: Callable[[], float] = lambda: -math.inf,
    ) -> None:
        """Open the session.

        Args:
            servers: ZooKeeper's addresses.
            root: znode under which the replicas stand.
            name: of this one.
            session_ms: the session's time-out, ms.
            on_elected: this one leads from now on.
            address: where this supervisor's heartbeat server listens.
            failure_timeout_ms: a predecessor whose heartbeat server says nothing for so long counts
                as dead.
            token: the deployment's secret; empty: anybody may read the znode.
            succeeds: whether this one may lead when these, who stand before it, have ended; asked
                before ZooKeeper knows it.
            ready: whether this one is in step; if not, it lets the others go first, once.
            on_doubt: another one may have led meanwhile, so the child has to find out.
            woke_at: when this process last went on after it was frozen; others may have passed it.
        """
        self._servers = servers
        self._root = root.rstrip("/")
        self._prefix = f"{self._root}/{ZNODE_PREFIX}"
        self._name, self._address = name, address
        self._on_elected, self._on_doubt = on_elected, on_doubt
        self._succeeds, self._ready, self._woke_at = succeeds, ready, woke_at
        self._confirmed = -math.inf
        """When ZooKeeper was last asked for this one's place, and told it."""
        self._session_s = session_ms / 1000
        self._secret = zookeeper.Secret(token)
        self._ahead = Ahead(
            failure_timeout_ms,
            self._succeed,
            lambda dead: zookeeper.close_session(servers, dead, self._session_s),
        )
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._joined = self._withdrawn = False
        self._lifeline = ""
        self._deciding, self._starting = threading.Lock(), threading.Lock()
        self._elected = False
        self._led_as: str | None = None
        """The znode as which this one was elected."""
        self._leaving = threading.Event()
        self._gave_way = 0
        self._let_others_go = False
        self._strangers: set[str] = set()
        """Znodes that no session owns: nobody stands there, whoever has made them."""
        self.znode: str | None = None
        self.last = False
        """Whether this one stands at the end of the queue, as far as is known."""
        self._owner: int | None = None
        """The session that is known to own it."""
        # A new leader of ZooKeeper gives each session its full time once more: be back within it.
        often = min(1.0, self._session_s / 8)
        forever = KazooRetry(max_tries=-1, delay=min(0.05, often), backoff=1.5, max_delay=often)
        self._client = zookeeper.client(
            servers,
            self._session_s,
            connection_retry=forever,
            command_retry=None,
            **self._secret.options,
        )
        self._client.add_listener(lambda _state: self._wake.set())
        try:
            self._client.start_async()
            threading.Thread(target=self._keep_alive, name="keep-alive", daemon=True).start()
        except (RuntimeError, OSError):
            self.close()
            raise

    @property
    def state(self) -> str:
        """`CONNECTED`, `SUSPENDED` (connection lost, session perhaps alive) or `LOST`."""
        return str(self._client.state)

    @property
    def client(self) -> KazooClient:
        """The client whose session this is."""
        return self._client

    @property
    def leads(self) -> bool:
        """Whether this one was elected, and has not left since."""
        return self._elected

    @property
    def next_in_line(self) -> bool:
        """Whether this one stands directly behind the leader."""
        return self._ahead.only_leader

    def depose_leader(self) -> None:
        """Close the leader's session, where this one stands directly behind; returns at once."""
        if self.next_in_line:
            self._ahead.depose()

    def join(self, lifeline: str = "") -> None:
        """Stand for election, at the end of the queue; the child's `lifeline` is there.

        Once it stands for it, and to be called again until then: there may be no thread left.
        """
        if self._joined:
            return
        self._lifeline = lifeline
        standing = threading.Thread(target=self._run, name="election", daemon=True)
        try:
            standing.start()
        except RuntimeError as error:
            _LOG.error("election has to wait for this machine", error=repr(error))
        else:
            self._joined = True

    def requeue(self) -> None:
        """Go from wherever this is in the queue to its end; be elected again from there."""
        self._leaving.set()
        self._wake.set()

    def fall_back(self) -> None:
        """Go to the end of the queue, unless this one leads: it would give away what it holds."""
        with self._deciding:
            if self._elected:
                return
            self._leaving.set()
        self._wake.set()

    def withdraw(self) -> None:
        """Stand for election no more; the session stays."""
        self._withdrawn = True
        self._wake.set()

    def queue(self) -> list[str]:
        """Return the names of those who stand for election, in order.

        Raises:
            KazooException, KazooTimeoutError: ZooKeeper cannot tell.
        """
        if not self._client.connected:
            raise KazooTimeoutError(f"the connection is {self.state}")
        return self._names(self._standing(self._client.get_children(self._root)))

    def call_for(self, name: str | None) -> None:
        """Ask that of those who stand for election `name` is next; None: whoever it is.

        Whoever else is elected gives way, once for each call. The call ends with this session, or
        when somebody is elected for good.

        Raises:
            KazooException, KazooTimeoutError: ZooKeeper cannot do it.
        """
        self._forget_call()
        if name:
            self._client.create(f"{self._root}/{NEXT}", name.encode(), ephemeral=True)

    def close(self) -> None:
        """End the session now: the znode is gone when this returns, if ZooKeeper can be reached."""
        self._closed.set()
        self._wake.set()
        self._ahead.stop()
        ending = threading.Thread(target=self._end_session, name="end-session", daemon=True)
        try:
            ending.start()
            ending.join(_CLOSE_S)  # a thread of kazoo's that waits for a name ends when it may
        except RuntimeError:
            self._end_session()

    def _end_session(self) -> None:
        with self._starting:
            try:
                with contextlib.suppress(AttributeError):  # kazoo, where it has never begun
                    self._client.stop()
            finally:
                self._client.close()

    def _keep_alive(self) -> None:
        # kazoo's own ping comes up to 0.4 s late, too late for short sessions.
        refreshed = 0.0
        while not self._closed.wait(min(0.1, self._session_s / 4)):
            if self._client.connected:
                with contextlib.suppress(KazooException, KazooTimeoutError):
                    self._client.exists_async("/").get(timeout=self._session_s)
            elif time.monotonic() - refreshed > _REFRESH_S:
                refreshed = time.monotonic()
                with contextlib.suppress(RuntimeError, OSError):  # no thread, or nothing, is left
                    RESOLVER.refresh(zookeeper.hosts(self._servers))  # they may have moved
                    self._revive()

    def _revive(self) -> None:
        """Have kazoo connect again where its thread has ended, at an error unknown to it."""
        thread = self._client._connection._connection_routine
        if thread is not None and thread.is_alive():
            return
        with self._starting:
            if not self._closed.is_set():
                _LOG.error("kazoo's thread has ended; another one begins")
                self._client.start_async()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            try:
                self._evaluate()
            except (KazooException, KazooTimeoutError) as error:
                _LOG.debug("election has to wait for ZooKeeper", error=repr(error))
                self._closed.wait(_RETRY_S)
            except (RuntimeError, OSError) as error:  # no thread, or nothing, is left
                _LOG.error("election has to wait for this machine", error=repr(error))
                self._closed.wait(_RETRY_S)
            else:
                self._wake.wait(_RECHECK_S)

    def _evaluate(self) -> None:
        asked = time.monotonic()
        if not self._client.connected:
            return
        if self._withdrawn:
            self._step_out()
            return
        if self._leaving.is_set():  # first of all: somebody waits for this place
            self._leave()
        children = self._children()
        queue = self._standing(children)
        mine = self._own(queue)
        if mine is None:
            self._stand()
            self._wake.set()
            return
        self._confirmed = asked
        self._look_for_doubt()
        place = queue.index(mine)
        self.last = place == len(queue) - 1
        before = [f"{self._root}/{child}" for child in queue[:place]]
        if not before:
            self._lead(queue, called=NEXT in children)
        elif not self._client.exists(before[-1], self._changed):
            self._wake.set()
        if self._ready():
            self._let_others_go = False
        self._look_at(before)

    def _children(self) -> list[str]:
        try:
            return list(self._client.get_children(self._root))
        except NoNodeError:
            return []

    def _standing(self, children: Iterable[str]) -> list[str]:
        return sorted(
            child
            for child in children
            if child.startswith(ZNODE_PREFIX) and child not in self._strangers
        )

    def _look_at(self, before: list[str]) -> None:
        """Watch the supervisors, and the children, of these znodes and no other ones."""
        found = {}
        for znode in self._ahead.unknown(before):
            with contextlib.suppress(NoNodeError, NoAuthError, ValidationError):
                data, stat = self._client.get(znode)
                if not stat.ephemeralOwner:
                    _LOG.warning("a znode that no session owns is passed over", znode=znode)
                    self._strangers.add(znode.rsplit("/", 1)[1])
                    self._wake.set()
                found[znode] = MemberInfo.model_validate_json(data)
        self._ahead.look_at(before, found)

    def _succeed(self, dead: list[str]) -> bool:
        """Lead at once, before ZooKeeper knows that all who stand before are dead."""
        with self._deciding:
            if self._elected or self._leaving.is_set() or self._closed.is_set():
                return False
            if self._woke_at() > self._confirmed:
                _LOG.info("those before it are dead, but it was frozen: ZooKeeper decides")
                self._wake.set()
                return False
            if not self._succeeds(dead):
                return False
            self._elected, self._led_as = True, self.znode
            _LOG.info("leads: those before it are dead", dead=dead, znode=self.znode)
            self._on_elected()
        return True

    def _look_for_doubt(self) -> None:
        """Have the child find out whether it still leads, when the place was lost meanwhile."""
        with self._deciding:
            doubtful = self._elected and self._led_as != self.znode
            if doubtful:
                self._elected = False
        if doubtful:
            _LOG.warning("the session was lost; the child finds out whether it still leads")
            self._on_doubt()

    def _own(self, queue: list[str]) -> str | None:
        """Find this session's znode, also one whose creation was never confirmed."""
        session, _ = self._session()
        known = self.znode.rsplit("/", 1)[1] if self.znode else None
        if known in queue and session == self._owner:  # numbers are never given out twice
            return known
        for child in queue:
            try:
                _, stat = self._client.get(f"{self._root}/{child}")
            except (NoNodeError, NoAuthError):
                continue
            if stat.ephemeralOwner == session:
                self.znode, self._owner = f"{self._root}/{child}", session
                return child
        self.znode = None
        return None

    def _step_out(self) -> None:
        self._elected = self.last = False
        if self.znode:
            with contextlib.suppress(NoNodeError):
                self._client.delete(self.znode)
            _LOG.info("stands for election no more", znode=self.znode)
            self.znode = None

    def _leave(self) -> None:
        """Go to the queue's end in one step, so that whoever gives way now comes behind this."""
        self._elected = False
        if self.znode:
            step = self._client.transaction()
            step.delete(self.znode)
            step.create(
                self._prefix,
                self._member_info(),
                acl=self._secret.acl,
                ephemeral=True,
                sequence=True,
            )
            left, made = step.commit()
            if not isinstance(made, Exception):
                self._made(str(made))
            elif not isinstance(left, NoNodeError):  # gone: with its session, or by this already
                raise made
        self._leaving.clear()

    def _stand(self) -> None:
        """Make a znode, unless one whose creation was never confirmed shows up by now."""
        self._client.ensure_path(self._root)
        self._client.sync(self._root)
        if self._own(self._standing(self._children())) is not None:
            return
        self._made(
            self._client.create(
                self._prefix,
                self._member_info(),
                acl=self._secret.acl,
                ephemeral=True,
                sequence=True,
            )
        )

    def _made(self, znode: str) -> None:
        self.znode = znode
        _LOG.info("znode made", znode=znode)

    def _session(self) -> tuple[int, bytes]:
        """Return the session's id and password.

        Raises:
            ConnectionLoss: there is no connection, so nobody knows what this session owns.
        """
        known: tuple[int, bytes] | None = self._client.client_id
        if known is None:
            raise ConnectionLoss
        return known

    def _member_info(self) -> bytes:
        session, password = self._session()
        return MemberInfo(
            name=self._name,
            address=self._address,
            lifeline=self._lifeline,
            session=session,
            password=password.hex(),
        ).encode()

    def _changed(self, _event: Any) -> None:
        self._wake.set()

    def _lead(self, queue: list[str], called: bool) -> None:
        """Be elected, or give way: to whom a switchover calls for, or being behind to others."""
        if self._elected:
            return
        if (called and self._gives_way(queue)) or self._lets_others_go(queue):
            self.fall_back()
            return
        with self._deciding:
            if self._elected or self._leaving.is_set():
                return
            self._elected, self._led_as = True, self.znode
            _LOG.info("elected", znode=self.znode)
            self._on_elected()
        if called:
            self._forget_call()

    def _lets_others_go(self, queue: list[str]) -> bool:
        """Tell whether this one is behind and others may not be; once, as all may be behind."""
        if self._ready() or self._let_others_go or len(queue) == 1:
            return False
        self._let_others_go = True
        _LOG.info("gives way, not being in step")
        return True

    def _gives_way(self, queue: list[str]) -> bool:
        try:
            name, stat = self._client.get(f"{self._root}/{NEXT}")
        except NoNodeError:
            return False
        wanted, again = name.decode(), stat.czxid == self._gave_way
        if again or wanted == self._name or wanted not in self._names(queue):
            return False
        self._gave_way = stat.czxid
        _LOG.info("gives way", to=wanted)
        return True

    def _forget_call(self) -> None:
        with contextlib.suppress(NoNodeError):
            self._client.delete(f"{self._root}/{NEXT}")

    def _names(self, queue: list[str]) -> list[str]:
        names = []
        for child in queue:
            with contextlib.suppress(NoNodeError, NoAuthError, ValidationError):
                data, _ = self._client.get(f"{self._root}/{child}")
                names.append(MemberInfo.model_validate_json(data).name)
        return names
