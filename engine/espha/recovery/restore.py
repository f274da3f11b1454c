"""What an engine brings along from earlier lives: snapshots, and whether it has diverged."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import structlog

from espha.connectors.topics import TopicPlan
from espha.kafka.order_log import resumed_behind
from espha.kafka.reader import LogError, Offsets
from espha.model import Project, model_digest
from espha.protocol.http import addresses
from espha.protocol.settings import Settings
from espha.protocol.sizes import LEAST_BYTES, MESSAGE_BYTES
from espha.recovery.candidates import Requirements, SnapshotCandidates
from espha.recovery.divergence import DivergenceLog
from espha.recovery.healing import NoStateError, have_snapshot_written
from espha.recovery.plain import NotPlainError
from espha.recovery.store import DIVERGED, DOUBTED, Snapshot, SnapshotStore

_NAMED = 4
"""Passed over snapshots that a message names."""
_LOG = structlog.get_logger()


class Restorable(Protocol):
    """What holds a model's state."""

    def restore(self, path: Path, offset: int, sequence: int) -> None:
        """Become what the state of an order record was; raises NotPlainError.

        Args:
            path: file with the state.
            offset: where in the file it begins.
            sequence: the order record.
        """


def requirements(
    bootstrap: str, project: Project, plan: TopicPlan, since: int | None = None
) -> Requirements:
    """Return what a snapshot must fit, as Kafka has it now.

    `since`: order record behind which its model began with empty state; None: whichever.

    Raises:
        LogError: the order log or an input has more than one partition, or cannot be asked for;
            the order log or the dead letters take too small messages only.
    """
    offsets = Offsets(bootstrap)
    for topic in (plan.order_log, plan.dead_letters):
        largest = offsets.largest(topic)
        if largest < LEAST_BYTES:
            raise LogError(
                f"topic {topic} takes messages of {largest} bytes at most, and engines need "
                f"{LEAST_BYTES} there: set its max.message.bytes to {MESSAGE_BYTES}"
            )
    topics = [plan.order_log, *plan.inputs.values()]
    return Requirements(
        model=model_digest(project),
        order_log=plan.order_log,
        topics={topic: offsets.undivided(topic) for topic in topics},
        first={topic: offsets.first(topic) for topic in topics},
        end={topic: offsets.written(topic) for topic in topics},
        since=since,
        resumed=lambda offset: resumed_behind(bootstrap, plan.order_log, offset),
    )


class Recovery:
    """An engine's snapshots and its log of divergences, on the volume that it has, or none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.store = _open(settings.snapshots, settings.snapshots_retained)
        self.divergences = DivergenceLog(self.store)
        self._refusals: list[str] = []
        self._begins_anew = False
        self.forgives = False
        """What the engine makes of the order records that there are counts, though it is not what
        they say: nobody else has, or will have, a state from behind them."""

    def meant_for(self, model: str) -> None:
        """Look only at what belongs to the model with this digest, from now on."""
        if self.store:
            self.store.model = model
        self.divergences.meant_for(model)

    def restore(
        self, job: Restorable, ask: Callable[[], Requirements]
    ) -> tuple[Snapshot | None, Requirements]:
        """Give the job the best state there is.

        Args:
            job: what is to hold it.
            ask: returns what a snapshot must fit, as it is now: one that others write for this
                engine is newer than what was asked for before.

        Returns:
            The snapshot, or None where the job begins with the order log's beginning; what it fits.

        Raises:
            NoStateError: it takes a state from behind an order record, and nobody has one.
            LogError: see `requirements`.
        """
        behind = self.divergences.last.behind
        waits_behind = self.divergences.waits_behind
        if waits_behind is not None:
            self._ask_for(waits_behind)
        wanted = ask()
        at_least = 0 if behind is None or self.forgives else behind
        before = behind if self.forgives else self.divergences.last.before
        begun = self._best(job, wanted, before, at_least)
        self._begins_anew = begun is None
        if begun is None and behind is None and before is not None and wanted.is_cut:
            # Nothing before the record is left to go back to: only who is behind it knows.
            self.divergences.give_up_going_back()
            return self.restore(job, ask)
        if begun is None and at_least:
            self.divergences.waited()
            raise NoStateError(
                f"no snapshot from behind order record {at_least} fits{self.passed_over()}"
            )
        self.divergences.began()
        return begun, wanted

    def replay_failed(self) -> None:
        """Note that topics lack what this life, which began anew, had to read.

        After a divergence it cannot go back: only who is behind the order record knows. Else one of
        the snapshots that could not be restored is tried again in the next life; nothing but them
        can rebuild the state.
        """
        if not self._begins_anew:
            return
        if self.divergences.last.before is not None:
            self.divergences.give_up_going_back()
        elif self.store:
            self.store.reconsider()

    def peers(self) -> list[str]:
        """Return the addresses of all replicas' supervisors."""
        return addresses(self._settings.peers)

    def _ask_for(self, behind: int) -> None:
        """Have a snapshot written by who has gone behind an order record; or learn to forgive."""
        last = self.divergences.last
        time.sleep(last.pause_s)
        settings = self._settings
        try:
            have_snapshot_written(self.peers, settings.name, settings.token, behind)
        except NoStateError as error:
            self.divergences.waited()
            hopeless = error.hopeless or not settings.peers
            if not ((last.is_stuck and hopeless) or (last.is_stuck_for_long and error.unlikely)):
                raise
            self.forgives = True
            _LOG.error(
                "nobody can recompute the order log: what it says stands, and the state is what "
                "this engine makes of it",
                behind=behind,
                diverged=last.message,
            )

    def _best(
        self, job: Restorable, wanted: Requirements, before: int | None, at_least: int
    ) -> Snapshot | None:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as spare:
            candidates = SnapshotCandidates(
                self.store,
                self.peers(),
                wanted,
                Path(spare),
                before,
                at_least,
                self._refusals,
                self._settings.token,
                [DOUBTED, DIVERGED] if self.forgives else [],
            )
            return self._restored(job, candidates)

    def _restored(self, job: Restorable, candidates: SnapshotCandidates) -> Snapshot | None:
        for snapshot in candidates.best_first():
            header = snapshot.header
            try:
                job.restore(snapshot.path, snapshot.offset, header.sequence)
            except NotPlainError as error:
                candidates.refuse(f"{header.sequence} of {header.engine}", str(error))
                self._doubt(snapshot)
                continue
            except Exception:  # Spark is gone, and might be in each life: too little memory
                self._doubt(snapshot)
                raise
            _LOG.info(
                "snapshot loaded",
                sequence=header.sequence,
                engine=header.engine,
                runtime=header.runtime,
            )
            return snapshot
        _LOG.info("no snapshot: the whole order log is replayed")
        return None

    def _doubt(self, snapshot: Snapshot) -> None:
        """Try others first in the next life; more memory, or another espha, may be what it needs.

        It is not given up: topics may no longer hold what rebuilds its state.
        """
        if self.store and snapshot.path.parent == self.store.folder:
            self.store.set_aside(snapshot.path, DOUBTED)

    def passed_over(self) -> str:
        """Say which snapshots could not be used, as the end of a message; empty when none was."""
        if not self._refusals:
            return ""
        named = "; ".join(self._refusals[:_NAMED])
        more = f"; and {len(self._refusals) - _NAMED} more" if self._refusals[_NAMED:] else ""
        return f". Snapshots passed over: {named}{more}"


def _open(folder: str, keep: int) -> SnapshotStore | None:
    if not folder:
        _LOG.warning("no snapshots are written: ESPHA_SNAPSHOTS is not set")
        return None
    store = SnapshotStore(Path(folder), keep)
    try:
        store.open()
    except OSError as error:
        _LOG.error("no snapshots are written", folder=folder, error=error.strerror)
        return None
    return store
