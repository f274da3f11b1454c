"""The engine: follows the order log as a standby, writes it when active.

Standby: read order records; run the batches that they name; compare digests.
Take-over, when elected: fence, read the log to its end, and commit, with whatever input is there.
Active: take input, run a batch, commit its outputs and its order record in one transaction. When
windows have something to do because time has passed, a batch without input does it.
Step down, when told to: let go between two batches, keep the state, and follow the log again.

Whatever goes wrong ends the process: its state is rebuilt from the log by the next one.
"""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Protocol

import structlog

from espha.connectors.topics import TopicPlan
from espha.engine.inputs import Inputs
from espha.kafka.order_log import OrderLog
from espha.kafka.reader import LogError
from espha.kafka.writer import FencedWriter, Record
from espha.model import Project, model_digest
from espha.pipeline.job import Batch, Input, Output, Result
from espha.protocol.child_side import Control
from espha.protocol.order import OrderRecord, Range
from espha.protocol.states import EngineState, Role
from espha.protocol.status import Counts, EngineProgress
from espha.recovery.scheduler import SnapshotScheduler
from espha.recovery.store import SnapshotMeta

_BATCH_LIMIT = 5_000
_REPLAY_RECORDS = 500
_REPLAY_INPUTS = 20_000
_WARM_UP_JOBS = 30
_LOOK_S = 0.005
"""How long a standby waits for an order record before it looks whether it is elected."""
_WAIT_S = 0.5
"""How long the active engine waits for input before it looks at anything else."""

RUNTIME = (
    f"espha {version('espha')}, Python {platform.python_version()}, PySpark {version('pyspark')}"
)
_LOG = structlog.get_logger()


class Diverged(Exception):  # noqa: N818 - it names a state
    """This engine computed other outputs than the active one did from the same order record."""

    def __init__(self, sequence: int, base: int, text: str) -> None:
        """Name the order record, and the one after which the snapshot was that led here (or 0)."""
        super().__init__(text)
        self.sequence, self.base = sequence, base


class Job(Protocol):
    """What runs batches: `espha.pipeline.job.BatchJob`."""

    def run(self, batches: list[Batch]) -> list[Result]:
        """Run batches one after the other."""

    def snapshot(self) -> tuple[int | None, bytes]:
        """Return the sequence number that the state stands for, and the state."""


class Fence(Protocol):
    """What fences a transactional id fast: `espha.pipeline.session.FastFence`."""

    def fence(self, transactional_id: str) -> None:
        """Shut out the holder of an id."""


@dataclass
class Position:
    """Where this engine stands in the order log."""

    sequence: int = 0
    epoch: int = 0
    clock: int = 0
    active: str = ""
    """Name of the engine that committed the last order record; empty: not seen yet."""
    fresh: bool = True
    """The next batch starts with empty state: nothing of this model was processed before."""
    counts: Counts = field(default_factory=Counts)

    @classmethod
    def behind(cls, meta: SnapshotMeta) -> "Position":
        """Return the position of a state that was restored."""
        return cls(meta.sequence, meta.epoch, meta.clock, fresh=False, counts=meta.counts)

    def passed(self, record: OrderRecord) -> None:
        """Go behind an order record."""
        self.sequence, self.epoch, self.clock = record.sequence, record.epoch, record.clock
        self.active = record.engine


class Engine:
    """One replica of a deployment; see the module's text for what it does."""

    def __init__(
        self,
        *,
        name: str,
        project: Project,
        plan: TopicPlan,
        job: Job,
        log: OrderLog,
        inputs: Inputs,
        writer: FencedWriter,
        fence: Fence,
        control: Control,
        scheduler: SnapshotScheduler,
        topic_ids: dict[str, str],
        start: SnapshotMeta | None,
        acknowledge: Callable[[OrderRecord], None] = lambda record: None,
    ) -> None:
        """Go on behind `start`, whose state the job holds already; None: from the beginning."""
        self._acknowledge = acknowledge
        self._name = name
        self._model = model_digest(project)
        self._label = f"{project.name}@{self._model[:4]}"
        self._plan = plan
        self._job = job
        self._log = log
        self._inputs = inputs
        self._writer = writer
        self._fence = fence
        self._control = control
        self._scheduler = scheduler
        self._topic_ids = topic_ids
        self._at = Position.behind(start) if start else Position()
        self._base = self._at.sequence
        self._replayed = 0
        self._due: int | None = None
        self._state = EngineState.STARTING

    def run(self) -> None:
        """Follow, take over when elected, and lead; returns never, raises when it must end.

        Raises:
            Fenced, WriterFailed, LogError, Diverged, StateLostError: why this engine ends.
        """
        self._report(EngineState.REPLAYING)
        self._warm_up()
        end = self._log.end()
        self._expect_whole(end)
        self._read_to(end)
        self._report(EngineState.STANDBY)
        while True:
            while self._control.role is Role.STANDBY:
                self._follow(self._log.poll(_LOOK_S, _REPLAY_RECORDS))
                self._snapshot()
            self._take_over()
            while self._control.role is Role.ACTIVE:
                self._step()
                self._snapshot()
            self._step_down()

    def _warm_up(self) -> None:
        """Start the worker and warm the code now, rather than in the first take-over."""
        at = self._at
        expect = None if at.fresh else at.sequence
        for _ in range(_WARM_UP_JOBS):
            self._job.run([Batch(expect, at.sequence, at.clock, [])])

    def _expect_whole(self, end: int) -> None:
        """Refuse a log whose records are all gone: nobody knows then where it had come to."""
        cut = self._log.cut
        if cut and self._log.at(end):
            raise LogError(
                f"topic {self._log.topic}: offsets {cut.start} to {cut.stop - 1} come next after "
                f"order record {self._at.sequence}, and retention has removed them and all behind "
                "them, so the state cannot be rebuilt"
            )

    def _read_to(self, end: int) -> None:
        for records in self._log.read_to(end, _REPLAY_RECORDS):
            self._follow(records)

    def _follow(self, records: list[OrderRecord]) -> None:
        """Process order records, as many as fit in one Spark job together."""
        pending: list[tuple[OrderRecord, Batch]] = []
        size = 0
        for record in records:
            self._check_sequence(record)
            if record.model != self._model:
                self._replay(pending)
                pending, size = [], 0
                self._pass_foreign(record)
                continue
            inputs = [entry for wanted in record.inputs for entry in self._inputs.read(wanted)]
            pending.append((record, self._batch(record.sequence, record.clock, inputs)))
            self._at.passed(record)
            size += len(inputs)
            if size >= _REPLAY_INPUTS:
                self._replay(pending)
                pending, size = [], 0
        self._replay(pending)

    def _check_sequence(self, record: OrderRecord) -> None:
        topic, wanted = self._log.topic, self._at.sequence + 1
        if record.sequence > wanted:
            raise LogError(
                f"topic {topic}: order records {wanted} to {record.sequence - 1} are gone "
                "(retention), so the state cannot be rebuilt"
            )
        if record.sequence < wanted:
            raise LogError(f"topic {topic}: order record {record.sequence} follows {wanted - 1}")

    def _pass_foreign(self, record: OrderRecord) -> None:
        """Go behind a record of another model: a changed model starts with empty state there."""
        for passed in record.inputs:
            self._inputs.skip(passed)
        self._at.passed(record)
        self._at.fresh = True

    def _batch(self, sequence: int, clock: int, inputs: list[Input]) -> Batch:
        expect = None if self._at.fresh else self._at.sequence
        self._at.fresh = False
        return Batch(expect, sequence, clock, inputs)

    def _replay(self, pending: list[tuple[OrderRecord, Batch]]) -> None:
        if not pending:
            return
        results = self._job.run([batch for _, batch in pending])
        for (record, batch), result in zip(pending, results, strict=True):
            if result.digest() != record.digest:
                raise Diverged(
                    record.sequence,
                    self._base,
                    f"order record {record.sequence}: {len(result.outputs)} outputs with digest "
                    f"{result.digest()[:12]} here, {record.outputs} with {record.digest[:12]} from "
                    f"{record.engine} ({record.runtime}; here {RUNTIME})",
                )
            self._count(batch, result)
        self._replayed += len(pending)
        self._report(EngineState.STANDBY if self._in_sync else EngineState.REPLAYING)

    @property
    def _in_sync(self) -> bool:
        return self._state in (EngineState.STANDBY, EngineState.ACTIVE)

    def _take_over(self) -> None:
        started = time.monotonic()
        self._fence.fence(self._writer.transactional_id)
        self._writer.fence()
        fenced = time.monotonic()
        self._read_to(self._log.end())
        read_back = time.monotonic()
        self._log.close()
        self._at.epoch += 1
        self._commit(*self._inputs.take(_BATCH_LIMIT, 0))
        _LOG.warning(
            "hot failover state switched to active",
            epoch=self._at.epoch,
            sequence=self._at.sequence,
            fence_ms=round((fenced - started) * 1000),
            read_back_ms=round((read_back - fenced) * 1000),
            commit_ms=round((time.monotonic() - read_back) * 1000),
        )

    def _step_down(self) -> None:
        """Let go, with nothing open and the state in place; follow the log from there."""
        self._report(
            EngineState.STANDBY
        )  # the next one waits for this, and for nothing that follows
        _LOG.warning("hot failover state switched to standby", sequence=self._at.sequence)
        # The marker of the last commit may not be there yet: begin before it, not behind it.
        self._log.reopen(self._writer.committed - 1)
        self._writer = self._writer.renewed()

    def _step(self) -> None:
        ranges, inputs = self._inputs.take(_BATCH_LIMIT, self._wait_s())
        if inputs or self._wait_s() == 0:
            self._commit(ranges, inputs)

    def _wait_s(self) -> float:
        """Return how long (s) to wait for input before windows have something to do anyway."""
        if self._due is None:
            return _WAIT_S
        return min(max(self._due / 1000 - time.time(), 0), _WAIT_S)

    def _commit(self, ranges: list[Range], inputs: list[Input]) -> None:
        """Run a batch and commit it: its outputs and its order record, or nothing."""
        clock = max(self._at.clock, time.time_ns() // 1_000_000)
        batch = self._batch(self._at.sequence + 1, clock, inputs)
        result = self._job.run([batch])[0]
        record = OrderRecord(
            sequence=batch.sequence,
            inputs=tuple(ranges),
            clock=clock,
            outputs=len(result.outputs),
            digest=result.digest(),
            model=self._model,
            engine=self._name,
            epoch=self._at.epoch,
            runtime=RUNTIME,
        )
        self._writer.commit(
            [*map(_record, result.outputs), Record(self._log.topic, record.encode())]
        )
        self._acknowledge(record)
        self._at.passed(record)
        self._count(batch, result)
        self._report(EngineState.ACTIVE)

    def _snapshot(self) -> None:
        """Keep the state now and then; one that fails costs a line in the log."""
        active = self._state is EngineState.ACTIVE
        if self._scheduler.due(active) and not self._at.fresh:
            self._scheduler.keep(self._meta(active), self._job.snapshot)
        if self._scheduler.news():
            self._report(self._state)

    def _meta(self, active: bool) -> SnapshotMeta:
        at = self._at
        return SnapshotMeta(
            sequence=at.sequence,
            epoch=at.epoch,
            clock=at.clock,
            model=self._model,
            order_log=self._writer.committed if active else self._log.reached,
            inputs=self._inputs.cursors(),
            topics=self._topic_ids,
            counts=at.counts,
        )

    def _count(self, batch: Batch, result: Result) -> None:
        self._at.counts = self._at.counts.plus(
            events_in=len(batch.inputs),
            events_out=len(result.outputs) - result.refused,
            dead_letters=result.refused,
        )
        self._due = result.due

    def _report(self, state: EngineState) -> None:
        at = self._at
        if state is not self._state:
            _LOG.info("state", state=state, sequence=at.sequence, epoch=at.epoch)
        self._state = state
        progress = EngineProgress(
            sequence=at.sequence,
            epoch=at.epoch,
            active=at.active,
            model=self._label,
            model_digest=self._model,
            replayed=self._replayed,
            **vars(at.counts),  # dict() of a model costs several times as much
            **vars(self._scheduler.facts()),
        )
        self._control.report(state, self._in_sync, progress)


def _record(output: Output) -> Record:
    return Record(output.topic, output.value, output.headers)
