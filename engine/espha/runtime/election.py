"""Election by ephemeral sequential znodes: each watches only the znode before its own."""

import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

ZNODE_PREFIX = "server-n_"
_RECHECK_S = 5.0
_RETRY_S = 0.1
_LOG = structlog.get_logger()


class Membership:
    """One stay in the election: a session, its znode, and the watch on the predecessor.

    `on_elected` is called once, from the election's own thread, when the znode is the lowest.
    Errors never end a membership; after a lost session it makes a new znode by itself.
    """

    def __init__(
        self, servers: str, root: str, name: str, session_ms: int, on_elected: Callable[[], None]
    ) -> None:
        self._root = root.rstrip("/")
        self._data = json.dumps({"name": name}).encode()
        self._on_elected = on_elected
        self._session_s = session_ms / 1000
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._joined = False
        self._elected = False
        self.znode: str | None = None
        forever = KazooRetry(max_tries=-1, delay=0.05, backoff=1.5, max_delay=1.0)
        self._client = KazooClient(
            hosts=servers, timeout=self._session_s, connection_retry=forever, command_retry=None
        )
        self._client.add_listener(lambda _state: self._wake.set())
        self._client.start_async()
        threading.Thread(target=self._keep_alive, name="keep-alive", daemon=True).start()

    @property
    def state(self) -> str:
        """`CONNECTED`, `SUSPENDED` (connection lost, session perhaps alive) or `LOST`."""
        return str(self._client.state)

    def join(self) -> None:
        """Stand for election, at the end of the queue."""
        if self._joined:
            return
        self._joined = True
        threading.Thread(target=self._run, name="election", daemon=True).start()

    def close(self) -> None:
        """End the session now: the znode is gone when this returns, if ZooKeeper can be reached."""
        self._closed.set()
        self._wake.set()
        self._client.stop()
        self._client.close()

    def _keep_alive(self) -> None:
        # kazoo's own ping comes up to 0.4 s late, too late for short sessions.
        while not self._closed.wait(min(0.1, self._session_s / 4)):
            if self._client.connected:
                with contextlib.suppress(KazooException, KazooTimeoutError):
                    self._client.exists_async("/").get(timeout=self._session_s)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            try:
                self._evaluate()
            except (KazooException, KazooTimeoutError) as error:
                _LOG.debug("election has to wait for ZooKeeper", error=repr(error))
                self._closed.wait(_RETRY_S)
            else:
                self._wake.wait(_RECHECK_S)

    def _evaluate(self) -> None:
        if not self._client.connected:
            return
        queue = (
            sorted(
                child
                for child in self._client.get_children(self._root)
                if child.startswith(ZNODE_PREFIX)
            )
            if self._client.exists(self._root)
            else []
        )
        mine = self._own(queue)
        if mine is None:
            self._create()
            self._wake.set()
            return
        place = queue.index(mine)
        if place == 0:
            self._elect()
        elif not self._client.exists(f"{self._root}/{queue[place - 1]}", self._changed):
            self._wake.set()

    def _own(self, queue: list[str]) -> str | None:
        """Find this session's znode, also one whose creation was never confirmed."""
        session = (self._client.client_id or (None,))[0]
        known = self.znode.rsplit("/", 1)[1] if self.znode else None
        for child in sorted(queue, key=lambda name: name != known):
            try:
                _, stat = self._client.get(f"{self._root}/{child}")
            except NoNodeError:
                continue
            if stat.ephemeralOwner == session:
                self.znode = f"{self._root}/{child}"
                return child
        self.znode = None
        return None

    def _create(self) -> None:
        self.znode = self._client.create(
            f"{self._root}/{ZNODE_PREFIX}", self._data, ephemeral=True, sequence=True, makepath=True
        )
        _LOG.info("znode made", znode=self.znode)

    def _changed(self, _event: Any) -> None:
        self._wake.set()

    def _elect(self) -> None:
        if not self._elected:
            self._elected = True
            _LOG.info("elected", znode=self.znode)
            self._on_elected()
