"""Processes that a test has started, with all that these have started."""

import os
import signal
import subprocess

from espha.local.processes import family, identify
from espha.local.waiting import wait_until


def kill(leader: "subprocess.Popen[bytes]") -> None:
    """Kill a process, its group and its descendants with SIGKILL, and wait for the end of each.

    A descendant may have a group of its own, as those of PostgreSQL have. One that is in the middle
    of writing to a disk still does that.
    """
    os.killpg(leader.pid, signal.SIGSTOP)  # nobody starts another one meanwhile
    members = [one for one in map(identify, family(leader.pid)) if one]
    os.killpg(leader.pid, signal.SIGKILL)
    for one in members:
        one.signal(signal.SIGKILL)
    leader.wait()
    wait_until(
        lambda: not (_is_there(leader.pid) or any(one.alive for one in members)),
        60,
        "all processes have ended",
    )


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
