"""What the kernel says of the memory of this pod, by its cgroup (version 2), and of a process."""

from pathlib import Path

CGROUP, PROC = Path("/sys/fs/cgroup"), Path("/proc")
_LIMIT = "memory.max"


def memory_limit(cgroup: Path) -> int | None:
    """Return the most bytes that it may have; None: there is no limit."""
    try:
        return int((cgroup / _LIMIT).read_text())
    except (OSError, ValueError):  # no file, or `max` in it
        return None


def memory_taken(cgroup: Path) -> int | None:
    """Return how many bytes it has that cannot be read again from somewhere; None: not known."""
    # The machine's own cgroup has no limit, nor the file for it.
    inside = (cgroup / _LIMIT).exists()
    return _value(cgroup / "memory.stat", "anon") if inside else None


def memory_of(process: int | str, proc: Path) -> int | None:
    """Return the same of a process."""
    kilobytes = _value(proc / str(process) / "status", "RssAnon:")
    return kilobytes * 1024 if kilobytes else None


def _value(path: Path, key: str) -> int | None:
    """Return the number behind a key in a file of such lines."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = (line.split() for line in lines)
    return next((int(words[1]) for words in found if words and words[0] == key), None)
