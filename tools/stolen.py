"""How much processor time the host of this machine has kept for others.

A virtual machine on a host that is full waits for processors that it seems to have. What a reader
waits for then says little of espha.
"""

from pathlib import Path

_STAT = Path("/proc/stat")
_IDLE, _STOLEN, _COUNTED = 3, 7, 8
"""Places among the times of all processors; what guests use counts as used already."""

QUIET = 0.02
"""What was measured with less of it stolen tells of espha."""


class Stolen:
    """Measures from when it is made on."""

    def __init__(self) -> None:
        self._before = _times()

    def share(self) -> float:
        """Return the share of what was wanted that was stolen; 0 where nothing was wanted."""
        passed = [now - then for now, then in zip(_times(), self._before, strict=True)]
        wanted = sum(passed) - passed[_IDLE]
        return passed[_STOLEN] / wanted if wanted > 0 else 0.0


def _times() -> list[int]:
    line = _STAT.read_text().partition("\n")[0]
    return [int(each) for each in line.split()[1:]][:_COUNTED]
