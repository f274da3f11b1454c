"""A wall clock of an engine's own, which a fault can turn; why not libfaketime: `turned/`."""

import os
from pathlib import Path

from chaos.here import ENVIRONMENT

_TURNED = Path(__file__).parent / "turned"


class Clock:
    """The wall clock of one engine's Python code; every other clock stays right."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set(0)

    def environment(self) -> dict[str, str]:
        """Return what lets a process use this clock."""
        return {
            "CHAOS_CLOCK": str(self._path),
            "PYTHONPATH": os.pathsep.join([str(_TURNED), ENVIRONMENT["PYTHONPATH"]]),
        }

    def set(self, ahead_s: int) -> None:
        """Put the clock so many seconds ahead of the machine's, or behind it."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text(f"{ahead_s:+d}\n")
        fresh.replace(self._path)
