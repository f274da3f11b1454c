"""When snapshots are written, and that nothing of it can stop an engine."""

import math
import threading
import time
import zlib
from collections.abc import Callable

import structlog

from espha.protocol.status import SnapshotFacts
from espha.recovery.divergence import DivergenceLog
from espha.recovery.store import Header, Snapshot, SnapshotMeta, SnapshotStore, make

_ACTIVE_INTERVALS = 10
"""The active engine waits this many intervals: where there are standbys, they do the work."""
_AFTER_FAILURE_INTERVALS = 10
_SHARE = 50
"""An engine spends at most one part in so many of its time on snapshots."""
_LOG = structlog.get_logger()

Take = Callable[[], tuple[int | None, bytes]]


class SnapshotScheduler:
    """Decides when an engine's state is written, and writes it from a thread of its own.

    A full disk, a volume that hangs, state that cannot be written: a line in the log, one more in
    `snapshot_failures`, and the engine goes on.
    """

    def __init__(
        self,
        store: SnapshotStore | None,
        divergences: DivergenceLog,
        *,
        engine: str,
        runtime: str,
        interval_s: float,
        wanted: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without a store nothing is ever written; `wanted` set asks for a snapshot now."""
        self._store, self._divergences, self._engine, self._runtime = (
            store,
            divergences,
            engine,
            runtime,
        )
        # Engines that start together must not all be busy with their snapshots at the same time.
        self._interval = interval_s * (0.8 + zlib.crc32(engine.encode()) % 41 / 100)
        self._clock = clock
        self._since = -math.inf  # what was replayed from the whole log is worth keeping at once
        self._pause = self._interval
        self._busy = threading.Event()
        self._wanted = wanted
        self._news = threading.Event()
        self._last: SnapshotMeta | None = None
        self._newest: Header | None = None
        self._made: float | None = None
        self._loaded: int | None = None
        self._took_ms: int | None = None
        self._failures = 0
        self._facts = SnapshotFacts()
        self._refresh()

    def loaded(self, snapshot: Snapshot) -> None:
        """Note that the engine began with this snapshot."""
        header = snapshot.header
        self._since = self._clock()
        self._loaded = header.sequence
        self._show(header)

    def due(self, active: bool) -> bool:
        """Tell whether it is time for a snapshot."""
        if self._store is None or self._busy.is_set():
            return False
        pause = self._pause * (_ACTIVE_INTERVALS if active else 1)
        return self._wanted.is_set() or self._clock() - self._since >= pause

    def keep(self, meta: SnapshotMeta, take: Take) -> None:
        """Take the state and begin to write it, unless the last snapshot says the same.

        Args:
            meta: what the state stands for.
            take: returns the sequence that the state stands for, and the state.
        """
        self._wanted.clear()
        self._since = started = self._clock()
        if self._store is None:
            return
        if self._last and _reached(self._last) == _reached(meta):
            self._made = time.time()  # it still says all there is to say
            self._refresh()
            self._news.set()
            return
        try:
            sequence, body = take()
        except Exception as error:  # also what Spark raises: the next batch tells what it means
            self._failed(str(error))
            return
        if sequence != meta.sequence:
            self._failed(f"the worker holds {sequence}, the engine is at {meta.sequence}")
            return
        took = self._clock() - started
        self._pause = max(self._interval, took * _SHARE)
        self._took_ms = round(took * 1000)
        self._last = meta
        snapshot = make(meta, body, self._engine, self._runtime, time.time_ns() // 1_000_000)
        self._busy.set()
        threading.Thread(
            target=self._write, args=(self._store, snapshot), name="snapshot", daemon=True
        ).start()

    def news(self) -> bool:
        """Tell, once, that the facts have changed."""
        changed = self._news.is_set()
        self._news.clear()
        return changed

    def facts(self) -> SnapshotFacts:
        """Return what the status shows."""
        return self._facts

    def _write(self, store: SnapshotStore, snapshot: Snapshot) -> None:
        header = snapshot.header
        try:
            path = store.write(snapshot)
        except OSError as error:
            self._last = None
            self._failed(error.strerror or str(error))
        else:
            self._show(header)
            self._divergences.settle()
            _LOG.info("snapshot", file=path.name, bytes=header.length, ms=self._took_ms)
        finally:
            self._news.set()
            self._busy.clear()

    def _show(self, newest: Header) -> None:
        self._newest, self._made = newest, newest.made / 1000
        self._refresh()

    def _refresh(self) -> None:
        """Make the facts anew: they are asked for at each batch, and change once a minute."""
        if self._store is None:
            return
        self._facts = SnapshotFacts(
            snapshot_sequence=self._newest.sequence if self._newest else None,
            snapshot_bytes=self._newest.length if self._newest else None,
            snapshot_made=self._made,
            snapshot_loaded=self._loaded,
            snapshot_ms=self._took_ms,
            snapshot_failures=self._failures,
        )

    def _failed(self, reason: str) -> None:
        self._failures += 1
        self._refresh()
        self._pause = self._interval * _AFTER_FAILURE_INTERVALS
        self._news.set()
        _LOG.error("no snapshot", reason=reason)


def _reached(meta: SnapshotMeta) -> tuple[object, ...]:
    return meta.sequence, meta.order_log, meta.inputs
