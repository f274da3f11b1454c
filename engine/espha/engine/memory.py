"""How much memory the worker has, which holds the state, and how near the pod is to its limit."""

import time
from collections.abc import Callable
from pathlib import Path

import structlog

from espha.protocol.status import MemoryFacts

_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_LIMIT = "memory.max"
_LOOK_S = 1.0
_NEAR = 0.8
"""Share of the limit from which on somebody should know of it."""
_LOG = structlog.get_logger()


class Memory:
    """Looks once a second at most; says in the log when the limit comes near."""

    def __init__(
        self,
        worker: Callable[[], int | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        cgroup: Path = _CGROUP,
        proc: Path = _PROC,
    ) -> None:
        """Look at the process that `worker` names, and at the cgroup (version 2) of this one."""
        self._worker, self._clock, self._cgroup, self._proc = worker, clock, cgroup, proc
        self._looked: float | None = None
        self._facts = MemoryFacts()
        self._near = False

    def facts(self) -> MemoryFacts:
        """Return what was there a second ago, or is now."""
        now = self._clock()
        if self._looked is None or now - self._looked >= _LOOK_S:
            self._looked = now
            self._facts = MemoryFacts(
                worker_memory=self._of_worker(),
                memory=self._of_pod(),
                memory_limit=_number(self._cgroup / _LIMIT),
            )
            self._tell(self._facts)
        return self._facts

    def _of_pod(self) -> int | None:
        # The machine's own cgroup has no limit, nor the file for it.
        inside = (self._cgroup / _LIMIT).exists()
        return _value(self._cgroup / "memory.stat", "anon") if inside else None

    def _of_worker(self) -> int | None:
        pid = self._worker()
        kilobytes = pid and _value(self._proc / str(pid) / "status", "RssAnon:")
        return kilobytes * 1024 if kilobytes else None

    def _tell(self, facts: MemoryFacts) -> None:
        if not facts.memory or not facts.memory_limit:
            return
        near = facts.memory > _NEAR * facts.memory_limit
        if near and not self._near:
            _LOG.warning(
                "memory is near the pod's limit; beyond it the kernel ends a process",
                memory=facts.memory,
                limit=facts.memory_limit,
                worker=facts.worker_memory,
            )
        self._near = near


def _number(path: Path) -> int | None:
    """Return the number in a file; None: there is no file, or no number in it (`max`)."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _value(path: Path, key: str) -> int | None:
    """Return the number behind a key in a file of such lines."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = (line.split() for line in lines)
    return next((int(words[1]) for words in found if words and words[0] == key), None)
