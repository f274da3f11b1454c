"""What a fault does when it strikes."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from espha.local.ports import listens
from support.servers import Server

Mend = Callable[[], None]
_LOOK_S, _LOOK_FOR_S = 0.02, 300.0


@dataclass(frozen=True)
class Stroke:
    """A fault that has just struck.

    Attributes:
        target: whom.
        mend: takes the cause away; returns when that is done, not when all is well again.
        detail: what chance has chosen, for example for how long.
        lasts: whether the cause goes away at a certain time, so that `mend` must not be late.
        back: monotonic moment at which the first of the servers that were down took connections
            again; None where that is not known, or not asked.
    """

    target: str
    mend: Mend
    detail: str = ""
    lasts: bool = False
    back: Callable[[], float | None] = lambda: None


def kill_process(pid: int) -> None:
    """Kill a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def lasting(
    duration: float,
    target: str,
    end: Mend,
    detail: str = "",
    back: Callable[[], float | None] = lambda: None,
) -> Stroke:
    """Return a stroke that lasts for `duration` seconds, and is taken away by `end`."""
    until = time.monotonic() + duration

    def mend() -> None:
        time.sleep(max(0.0, until - time.monotonic()))
        end()

    return Stroke(target, mend, f"{duration:.1f} s{detail}", lasts=True, back=back)


class _Return:
    """Looks for the first of some servers to take connections, in a thread of its own."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = servers
        self._moment: float | None = None

    def look(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._look, name="return", daemon=True).start()

    def moment(self) -> float | None:
        """Return when that was; None: not yet."""
        return self._moment

    def _look(self) -> None:
        pause, until = threading.Event(), time.monotonic() + _LOOK_FOR_S
        while time.monotonic() < until:
            if any(listens(server.port) for server in self._servers):
                self._moment = time.monotonic()
                return
            pause.wait(_LOOK_S)


def servers_down(
    servers: Sequence[Server], duration: float, target: str = "", detail: str = ""
) -> Stroke:
    """Kill servers; the stroke starts them again after `duration` seconds."""
    for server in servers:
        server.signal(signal.SIGKILL)
    returns = _Return(servers)

    def back() -> None:
        for server in servers:
            server.kill()  # collects it
            server.start()
        returns.look()

    names = target or ", ".join(each.name for each in servers)
    return lasting(duration, names, back, detail, returns.moment)
