"""What a fault does when it strikes."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from support.servers import Server

Mend = Callable[[], None]


@dataclass(frozen=True)
class Stroke:
    """A fault that has just struck.

    Attributes:
        target: whom.
        mend: takes the cause away; returns when that is done, not when all is well again.
        detail: what chance has chosen, for example for how long.
        lasts: whether the cause goes away at a certain time, so that `mend` must not be late.
    """

    target: str
    mend: Mend
    detail: str = ""
    lasts: bool = False


def kill_process(pid: int) -> None:
    """Kill a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def lasting(duration: float, target: str, end: Mend, detail: str = "") -> Stroke:
    """Return a stroke that lasts for `duration` seconds, and is taken away by `end`."""
    until = time.monotonic() + duration

    def mend() -> None:
        time.sleep(max(0.0, until - time.monotonic()))
        end()

    return Stroke(target, mend, f"{duration:.1f} s{detail}", lasts=True)


def servers_down(
    servers: Sequence[Server], duration: float, target: str = "", detail: str = ""
) -> Stroke:
    """Kill servers; the stroke starts them again after `duration` seconds."""
    for server in servers:
        server.signal(signal.SIGKILL)

    def back() -> None:
        for server in servers:
            server.kill()  # collects it
            server.start()

    return lasting(duration, target or ", ".join(each.name for each in servers), back, detail)
