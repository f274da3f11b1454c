"""Those who stand before one in the election: each is watched, so that their deaths are known.

Whoever stands behind somebody that is gone closes the dead session, by which ZooKeeper's queue
moves on. Where all that stand before are known to be dead, nobody needs ZooKeeper to know who is
next.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from espha.ha.heartbeat import End, Monitor
from espha.protocol.member import MemberInfo

_BESIDE_S = 0.25
"""A take-over has the processor first; sessions of the dead are closed after it."""


@dataclass
class _One:
    """Somebody who stands before."""

    info: MemberInfo
    monitors: list[Monitor] = field(default_factory=list)
    end: End | None = None
    closed: bool = False

    def stop(self) -> None:
        for monitor in self.monitors:
            monitor.stop()


class Ahead:
    """Watches those before one; `succeed` and `close` are called from threads of their own."""

    def __init__(
        self,
        failure_timeout_ms: int,
        succeed: Callable[[list[str]], bool],
        close: Callable[[MemberInfo], None],
    ) -> None:
        """Watch nobody yet.

        Args:
            failure_timeout_ms: how long a supervisor may be silent, ms.
            succeed: called with their names when all of them have ended; says whether this one
                leads from then on.
            close: called to close the session of one that is gone, and that stands directly before
                this one.
        """
        self._timeout_ms, self._succeed, self._close = failure_timeout_ms, succeed, close
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._those: dict[str, _One] = {}
        self._count = 0
        """How many stand before, with those of whom nothing can be read."""

    def look_at(self, znodes: list[str], found: Mapping[str, MemberInfo]) -> None:
        """Watch these and no others, as they stand in the queue.

        Args:
            znodes: their znodes.
            found: what stands in those that are new.

        Raises:
            RuntimeError: no thread is left; who is not watched is `unknown`.
        """
        with self._lock:
            before = self._those
            self._those, self._count = {}, len(znodes)
            try:
                for znode in znodes:
                    if znode in before:
                        self._those[znode] = before.pop(znode)
                    elif znode in found:
                        self._those[znode] = self._watch(znode, found[znode])
            finally:
                for one in before.values():
                    one.stop()
            ended = self._ended_ones()
        # It may lead now, though it might not when they ended.
        leads = bool(ended) and len(ended) == len(znodes) and self._succeed(ended)
        self._clear(_BESIDE_S if leads else 0.0)

    def unknown(self, znodes: list[str]) -> list[str]:
        """Return those that are not watched yet."""
        return [znode for znode in znodes if znode not in self._those]

    @property
    def only_leader(self) -> bool:
        """Whether nobody but the leader stands before."""
        return self._count == len(self._those) == 1

    def depose(self) -> None:
        """Close the session of the one directly before, dead or not; returns at once."""
        with self._lock:
            for one in list(self._those.values())[-1:]:
                self._begin_to_close(one)
                one.closed = True

    def stop(self) -> None:
        """Watch nobody any more."""
        self._stopped.set()
        self.look_at([], {})

    def _watch(self, znode: str, info: MemberInfo) -> _One:
        one = _One(info)
        try:
            if info.address:
                one.monitors.append(
                    Monitor(info.address, lambda how: self._ended(znode, how), self._timeout_ms)
                )
            if info.lifeline:
                one.monitors.append(Monitor(info.lifeline, lambda how: self._ended(znode, how)))
        except RuntimeError:
            one.stop()
            raise
        return one

    def _ended(self, znode: str, how: End) -> None:
        with self._lock:
            one = self._those.get(znode)
            if one is None or one.end is End.ENDED:
                return
            if how is End.SILENT and znode != next(reversed(self._those)):
                # The one between looks after it; whether it is still silent then is another matter.
                one.stop()
                try:
                    self._those[znode] = self._watch(znode, one.info)
                except RuntimeError:  # no thread is left: whoever looks at the queue next does it
                    del self._those[znode]
                return
            one.end = how
            ended = self._ended_ones()
            everybody = len(ended) == self._count
        self._clear(_BESIDE_S if everybody and self._succeed(ended) else 0.0)

    def _ended_ones(self) -> list[str]:
        return [each.info.name for each in self._those.values() if each.end is End.ENDED]

    def _clear(self, pause: float) -> None:
        """Close the sessions of the dead that nobody stands between, when `pause` (s) is over."""
        if pause and self._stopped.wait(pause):
            return
        for one in self._nearest_dead():
            self._begin_to_close(one)

    def _begin_to_close(self, one: _One) -> None:
        threading.Thread(
            target=self._close, args=(one.info,), name="close-session", daemon=True
        ).start()

    def _nearest_dead(self) -> list[_One]:
        dead = []
        with self._lock:
            for one in reversed(self._those.values()):
                if one.end is None:
                    break
                if not one.closed:
                    one.closed = True
                    dead.append(one)
        return dead
