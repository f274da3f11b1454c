"""A session's share of the processor, where Linux shares it out by sessions first.

Linux does that for processes that are in no container (`sched_autogroup_enabled`): a process's own
nice value counts inside its session only. In a container the shares are those of the pods, and
nothing here changes them.
"""

import os
import time

from espha.cgroup import PROC

STARTING = 10
"""A tenth of the usual share: who starts gets what is left, and a little in any case."""
LEAST = 19
_USUAL = 0
_TRIES, _AGAIN_S = 5, 0.1
_standing_back: set[int] = set()
"""Who has done that and has not taken the usual share again: this process, and whoever forked it
behind that."""


def stand_back(nice: int) -> None:
    """Let others have the processor first: sessions that have no nice value, or a lower one."""
    process = os.getpid()
    for _ in range(_TRIES):
        if _share(process, nice):
            _standing_back.add(process)
            return
        time.sleep(_AGAIN_S)


def take_usual_share() -> bool:
    """Have the processor like all others from now on, and whoever forked this process, too.

    Returns:
        False: Linux wants to be asked again a little later.
    """
    for process in tuple(_standing_back):
        if not _share(process, _USUAL):
            return False
        _standing_back.remove(process)
    return True


def _share(process: int, nice: int) -> bool:
    """Set the nice value of a process's session among all sessions; False: ask again later."""
    try:
        (PROC / str(process) / "autogroup").write_text(str(nice))
    except BlockingIOError:  # one such change in a tenth of a second, for those who are not root
        return False
    except OSError:  # this Linux knows no such shares
        return True
    return True
