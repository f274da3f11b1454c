"""A wall clock of an engine's own, which a fault can turn: libfaketime around its process."""

from pathlib import Path

_PLACES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime")


def library() -> Path | None:
    """Return the library, which Debian's package libfaketime brings; None where it is missing."""
    found = [Path(place) / "libfaketimeMT.so.1" for place in _PLACES]
    return next((path for path in found if path.exists()), None)


class Clock:
    """The wall clock of one engine; its monotonic clock and its JVM's clocks stay right."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set(0)

    def environment(self) -> dict[str, str]:
        """Return what lets a process use this clock."""
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_SKIP_CMDS": "java",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }

    def set(self, ahead_s: int) -> None:
        """Put the clock so many seconds ahead of the machine's, or behind it."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text(f"{ahead_s:+d}\n")
        fresh.replace(self._path)
