"""When snapshots are written, and that nothing of it can stop an engine."""

import math
import threading
import time
import zlib
from collections.abc import Callable

import structlog

from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, CheckpointReport
from espha.protocol.status import SnapshotFacts
from espha.recovery.body import Written
from espha.recovery.divergence import DivergenceLog
from espha.recovery.pending import Pending
from espha.recovery.store import (
    LARGEST_BODY,
    Draft,
    Header,
    Snapshot,
    SnapshotMeta,
    SnapshotStore,
    header_of,
)

_AFTER_FAILURE_INTERVALS = 10
_AFTER_OTHER_S = 1.0
"""When the worker is busy with another checkpoint, it is asked again after so many seconds."""
_PIN_ATTEMPTS = 10
_PIN_LOOK_S = 0.1
_SHARE = 10
"""The process that writes a snapshot is there for at most one part in so many of the time."""
_LOG = structlog.get_logger()

Take = Callable[[CheckpointOrder], CheckpointBegun]


class SnapshotScheduler:
    """Decides when an engine's state is written.

    A forked process of the worker writes it (`espha.pipeline.forked`), the engine goes on, and a
    thread waits for the end and makes a snapshot of it.

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
        chosen: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without a store nothing is ever written.

        Args:
            store: where to write.
            divergences: are over with a snapshot.
            engine: name of this engine.
            runtime: versions, for people.
            interval_s: seconds between two snapshots.
            wanted: set: somebody asks for a snapshot now.
            chosen: tells whether this engine is the one that writes them without being asked.
            clock: tells the time in seconds.
        """
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
        self._wanted, self._chosen = wanted, chosen
        self._news = threading.Event()
        self._last: SnapshotMeta | None = None
        self._newest: Header | None = None
        self._made: float | None = None
        self._loaded: int | None = None
        self._held_up_ms: int | None = None
        self._took_ms: int | None = None
        self._memory: int | None = None
        self._failures = 0
        self._facts = SnapshotFacts()
        self._refresh()

    def loaded(self, snapshot: Snapshot) -> None:
        """Note that the engine began with this snapshot."""
        header = snapshot.header
        self._since = self._clock()
        self._loaded = header.sequence
        if self._store and snapshot.path in self._store.files():
            self._show(header)
        else:  # a peer's, for which the volume has no room, or one in doubt: nobody can have it
            self._refresh()

    def due(self) -> bool:
        """Tell whether it is time for a snapshot."""
        if self._store is None or self._busy.is_set():
            return False
        if self._wanted.is_set():
            return True
        return self._clock() - self._since >= self._pause and self._chosen()

    def keep(self, meta: SnapshotMeta, take: Take) -> None:
        """Have the state written, unless the last snapshot says the same.

        Args:
            meta: what the state stands for.
            take: has the worker begin with it.
        """
        self._wanted.clear()
        self._since = self._clock()
        if self._store is None:
            return
        if self._last and _reached(self._last) == _reached(meta):
            self._made = time.time()  # it still says all there is to say
            self._refresh()
            self._news.set()
            return
        draft = self._store.draft(meta, self._engine, self._runtime)
        try:
            pending = Pending(str(draft.path), draft.offset)
        except OSError as error:
            self._failed(error.strerror or str(error))
            return
        try:
            begun = take(pending.order)
        except Exception as error:  # also what Spark raises: the next batch tells what it means
            begun = CheckpointBegun(error=str(error))
        if begun.error or begun.sequence != meta.sequence:
            pending.drop()
            if begun.busy:
                self._since += _AFTER_OTHER_S - self._pause
                return
            held = f"the worker holds {begun.sequence}, the engine is at {meta.sequence}"
            self._failed(begun.error or held)
            return
        self._held_up_ms = round(begun.pause_ms)
        self._last = meta
        self._busy.set()
        pending.wait(lambda report: self._finish(draft, report))

    def pin(self, meta: SnapshotMeta, take: Take, waits: Callable[[], None]) -> None:
        """Write the state, and wait until it is there: this process ends then.

        Args:
            meta: what the state stands for.
            take: has the worker begin with it.
            waits: called now and then while it waits.
        """
        for _ in range(_PIN_ATTEMPTS):
            if self._store is None or (self._newest and self._newest.sequence == meta.sequence):
                return
            if not self._busy.is_set():
                self.keep(meta, take)
            waits()
            time.sleep(_PIN_LOOK_S)
            while self._busy.is_set():
                waits()
                time.sleep(_PIN_LOOK_S)

    def news(self) -> bool:
        """Tell, once, that the facts have changed."""
        changed = self._news.is_set()
        self._news.clear()
        return changed

    def facts(self) -> SnapshotFacts:
        """Return what the status shows."""
        return self._facts

    def _finish(self, draft: Draft, report: CheckpointReport) -> None:
        """Make a snapshot of what was written; in a thread of its own."""
        try:
            self._keep(draft, report)
        finally:
            self._news.set()
            self._busy.clear()

    def _keep(self, draft: Draft, report: CheckpointReport) -> None:
        store = self._store
        if store is None:
            return
        if report.error or report.length > LARGEST_BODY:
            store.drop(draft)
            self._last = None
            self._failed(report.error or f"the state has {report.length} bytes")
            return
        written = Written(report.length, report.checksum, report.state)
        now = time.time_ns() // 1_000_000
        header = header_of(draft.meta, written, self._engine, self._runtime, now)
        try:
            with self._divergences.finishing() as counts:
                if not counts:
                    store.drop(draft)
                    return
                path = store.finish(draft, header)
                self._divergences.settle()
        except OSError as error:
            self._last = None
            self._failed(error.strerror or str(error))
            return
        self._took_ms, self._memory = report.took_ms, report.memory
        self._pause = max(self._interval, report.took_ms / 1000 * _SHARE)
        self._show(header)
        _LOG.info(
            "snapshot",
            file=path.name,
            bytes=header.length,
            held_up_ms=self._held_up_ms,
            took_ms=report.took_ms,
            memory=report.memory,
        )

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
            snapshot_ms=self._held_up_ms,
            snapshot_took_ms=self._took_ms,
            snapshot_memory=self._memory,
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
