"""Groups of processes that a test has started."""

import os
import signal
import subprocess

from espha.local.waiting import wait_until


def kill(leader: "subprocess.Popen[bytes]") -> None:
    """Kill a process and all of its group with SIGKILL, and wait for the end of each.

    One that is in the middle of writing to a disk still does that.
    """
    os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
    wait_until(lambda: not _is_there(leader.pid), 60, "all processes of the group have ended")


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
