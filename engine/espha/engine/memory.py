"""How much memory the worker has, which holds the state, and how near the pod is to its limit."""

import time
from collections.abc import Callable
from pathlib import Path

import structlog

from espha.cgroup import CGROUP, PROC, memory_limit, memory_of, memory_taken
from espha.protocol.status import MemoryFacts

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
        cgroup: Path = CGROUP,
        proc: Path = PROC,
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
            pid = self._worker()
            self._facts = MemoryFacts(
                worker_memory=memory_of(pid, self._proc) if pid else None,
                memory=memory_taken(self._cgroup),
                memory_limit=memory_limit(self._cgroup),
            )
            self._tell(self._facts)
        return self._facts

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
