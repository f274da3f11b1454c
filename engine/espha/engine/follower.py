"""A standby's work: the batches that the order log names, and a look at what came of them."""

import time
from collections.abc import Callable
from typing import Protocol

import structlog

from espha.engine.agreement import Agreement
from espha.engine.batch_size import BatchSize
from espha.engine.digests import inputs_digest
from espha.engine.forgiveness import Forgiveness
from espha.engine.gathering import Gathering
from espha.engine.hearing import Hearing
from espha.engine.inputs import Inputs
from espha.engine.lag import Lag
from espha.engine.position import Position
from espha.kafka.order_log import OrderLog, StrayError
from espha.kafka.reader import LogError
from espha.kernel import SEMANTICS
from espha.pipeline.job import Batch, BrokenRecordError, Input, Result
from espha.protocol.activity import Doing
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder
from espha.protocol.order import OrderRecord
from espha.protocol.sizes import REPLAY_BYTES
from espha.protocol.states import Step

_REPLAY_RECORDS = 500
_REPLAY_INPUTS = 20_000
_DIGEST_S = 60.0
"""How long a digest of a large state may take where it is waited for."""
_LOG = structlog.get_logger()


class Diverged(Exception):  # noqa: N818 - it names a state
    """This engine made something else of an order record than the active one did."""

    def __init__(
        self,
        sequence: int,
        base: int,
        text: str,
        state: str = "",
        broken: tuple[str, int] | None = None,
    ) -> None:
        """Say where.

        Args:
            sequence: the order record.
            base: the one after which the snapshot was that led here, or 0.
            text: what differs.
            state: digest of its own state after the record, where that is what differs.
            broken: topic and offset of an input record that it cannot process, if that differs.
        """
        super().__init__(text)
        self.sequence, self.base, self.state, self.broken = sequence, base, state, broken


class Job(Protocol):
    """What runs batches: `espha.pipeline.job.BatchJob`."""

    def run(self, batches: list[Batch], transaction: int = 0) -> list[Result]:
        """Run batches one after the other; send their outputs in a transaction, if there is one."""

    def checkpoint(self, order: CheckpointOrder) -> CheckpointBegun:
        """Have the state taken, beside what goes on."""


class Follower:
    """Processes order records exactly, in order, and compares digests."""

    def __init__(
        self,
        job: Job,
        log: OrderLog,
        inputs: Inputs,
        at: Position,
        *,
        model: str,
        runtime: str,
        moved: Callable[[], None],
        named: Callable[[OrderRecord], None],
        doing: Doing,
        agreement: Agreement,
        newest: Callable[[], int],
        size: BatchSize,
        forgiveness: Forgiveness,
        careful: bool,
    ) -> None:
        """Go on at `at`, which moves on with each record.

        Args:
            job: runs batches.
            log: names them.
            inputs: what they are made of.
            at: where to begin.
            model: the model's digest.
            runtime: versions, for people.
            moved: called when records have been processed.
            named: called with the last record where it names an heir, before it is processed.
            doing: hears of each step.
            agreement: compares states.
            newest: returns the newest order record that other replicas know of.
            size: learns how long records take, for when this engine leads.
            forgiveness: what is left as it is in the log that is replayed.
            careful: this engine has diverged: no mark in the log that is replayed is passed over.
        """
        self._job, self._log, self._inputs, self._at = job, log, inputs, at
        log.at_stray = self._meet_stray
        self._model, self._runtime = model, runtime
        self._moved, self._named = moved, named
        self._doing, self._agreement, self._size = doing, agreement, size
        self._base = at.sequence
        self.lag = Lag()
        self._hearing = Hearing(log, at, newest)
        self._gathering = Gathering()
        self._forgiveness, self._careful = forgiveness, careful
        self._semantics = SEMANTICS
        self.replayed = 0
        """Order records processed in this life."""

    def poll(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for a record; process what is there, if enough is."""
        records = self._log.poll(timeout, _REPLAY_RECORDS)
        if records and records[-1].heir and not self._log.behind:
            self._named(records[-1])
        successor = bool(records) and records[-1].epoch != self._at.epoch
        self._gathering.put(records)
        if successor or self._gathering.is_due:
            self.settle()
        self.lag.look(self._log.behind, self._hearing.is_deaf(bool(records)))
        self._compare()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is held: all input of the records that were read is processed."""
        return self._gathering.is_empty

    def settle(self) -> None:
        """Process what was read and is held."""
        self._follow(self._gathering.take())

    def expect_whole(self, end: int) -> None:
        """Refuse a log whose records are all gone: nobody knows then where it had come to."""
        cut = self._log.cut
        if cut and self._log.at(end):
            raise LogError(
                f"topic {self._log.topic}: offsets {cut.start} to {cut.stop - 1} come next after "
                f"order record {self._at.sequence}, and retention has removed them and all behind "
                "them, so the state cannot be rebuilt"
            )

    def read_to(self, end: int) -> None:
        """Process all records before offset `end`."""
        self.settle()
        for records in self._log.read_to(end, _REPLAY_RECORDS):
            self._follow(records)
            self._compare()
        self._compare()  # what was held may have told of a difference
        self.lag.look(self._log.behind)

    def begin_to_follow(self) -> None:
        """Have replayed the log that there was: nothing of what comes now is forgiven."""
        waited, self._careful = self._careful, False
        if waited:
            self._agreement.wait(_DIGEST_S)
            self._compare()
        self._forgiveness.end(self._at.sequence)
        if waited:
            self.read_to(self._log.end())  # the log has gone on meanwhile

    def _follow(self, records: list[OrderRecord]) -> None:
        """Process order records, as many as fit in one Spark job together."""
        pending: list[tuple[OrderRecord, Batch]] = []
        count = size = 0
        for record in records:
            self._check_sequence(record)
            self._look_at_model(record)
            if record.model != self._model and not self._at.begun:
                self._replay(pending)
                pending, count, size = [], 0, 0
                self._pass_foreign(record)
                continue
            if record.model == self._model:
                self._look_at_semantics(record)
            self._resume(record)
            with self._doing.within(Step.READING):
                inputs = self._inputs_of(record)
            length = sum(len(entry.value) for entry in inputs)
            marked = record.checkpoint and record.model == self._model
            careful = marked and self._careful
            full = count + len(inputs) > _REPLAY_INPUTS or size + length > REPLAY_BYTES
            if full or careful:
                self._replay(pending)
                pending, count, size = [], 0, 0
            if careful:
                self._agreement.wait(_DIGEST_S)
                self._compare()
            skipped = record.skipped + self._forgiveness.skipped(record)
            batch = self._at.batch(record.sequence, record.clock, inputs, skipped)
            order = self._agreement.order() if marked else None
            pending.append((record, batch._replace(checkpoint=order)))
            self._at.passed(record)
            count, size = count + len(inputs), size + length
            if self._begins(record):
                self._replay(pending)
                pending, count, size = [], 0, 0
                self._begin(record)
        self._replay(pending)

    def _resume(self, record: OrderRecord) -> None:
        """Leave out what a record says is left out."""
        for topic, offset in record.resumes:
            if self._inputs.has(topic) and self._inputs.next_offsets()[topic] < offset:
                self._inputs.pass_over(topic, offset)
                _LOG.warning("input is left out", topic=topic, before=offset)

    def _inputs_of(self, record: OrderRecord) -> list[Input]:
        """Read what a record names; all of it, and nothing else.

        Of a record of another model, the topics that this one has.
        """
        named = [
            wanted
            for wanted in record.inputs
            if record.model == self._model or self._inputs.has(wanted.topic)
        ]
        inputs = [entry for wanted in named for entry in self._inputs.read(wanted)]
        if record.records is None or len(named) < len(record.inputs):
            return inputs
        digest = inputs_digest(inputs)
        if (len(inputs), digest) != (record.records, record.inputs_digest):
            places = ", ".join(
                f"{topic} {start} to {end - 1}" for topic, start, end in record.inputs
            )
            self._differs(
                record,
                f"its input ({places}) has {len(inputs)} records with digest {digest[:12]} here; "
                f"{record.records} with {record.inputs_digest[:12]} were read by {record.engine}",
            )
        return inputs

    def _meet_stray(self, stray: StrayError) -> None:
        """End this engine, which then takes the state of one that has gone on behind the record.

        An active engine has: it does not read its own log. Where nobody is left who could know
        better, the record is passed over: it is none, and the numbers of the others have no gap.
        One that has a number itself may leave such a gap, and is never passed over.
        """
        self.settle()
        if not self._forgiveness.covers(self._at.sequence + 1):
            raise Diverged(self._at.sequence + 1, self._base, str(stray))
        if not stray.numbered:
            _LOG.error("it is passed over", stray=str(stray))

    def _differs(self, record: OrderRecord, what: str) -> None:
        """End this engine, unless nobody is left who could know better."""
        text = f"order record {record.sequence}: {what}"
        if self._forgiveness.covers(record.sequence):
            _LOG.error("it is left at that", difference=text)
            return
        raise Diverged(record.sequence, self._base, text)

    def _compare(self) -> None:
        """End this engine when its state is not the active engine's."""
        while difference := self._agreement.difference():
            sequence, here, there, engine = difference
            text = (
                f"order record {sequence}: the state after it has digest {here[:12]} here, "
                f"{there[:12]} at {engine}"
            )
            if not self._forgiveness.covers(sequence):
                raise Diverged(sequence, self._base, text, here)
            _LOG.error("it is left at that", difference=text)

    def _look_at_semantics(self, record: OrderRecord) -> None:
        """Say, once, that the active engine's espha may compute other things than this one's.

        What that one has made of its records stands, and is not compared: during an upgrade engines
        of both versions follow and lead, and the state is what each makes of the log.
        """
        theirs = record.semantics or SEMANTICS
        if theirs != self._semantics:
            self._semantics = theirs
            _LOG.warning(
                "order records are of another version of what models mean, and are not compared",
                sequence=record.sequence,
                semantics=theirs,
                here=SEMANTICS,
                runtime=record.runtime,
            )

    def _check_sequence(self, record: OrderRecord) -> None:
        topic, wanted = self._log.topic, self._at.sequence + 1
        if record.model != self._model and self._at.knows_nothing:
            return  # retention has removed those before, and nothing of them is needed
        if record.sequence > wanted:
            raise LogError(
                f"topic {topic}: order records {wanted} to {record.sequence - 1} are gone "
                "(retention), so the state cannot be rebuilt"
            )
        if record.sequence < wanted:
            raise LogError(f"topic {topic}: order record {record.sequence} follows {wanted - 1}")

    def _look_at_model(self, record: OrderRecord) -> None:
        """Begin where an espha that knew no switch has changed the model: with empty state.

        Raises:
            LogError: this engine's model has begun earlier, at a record that was not read.
        """
        if record.model != self._model:
            return
        if self._at.model not in ("", self._model):
            self._at.begin(record.since)
        elif not self._at.begun and (record.since or not self._at.knows_nothing):
            began = f"behind order record {record.since}" if record.since else "with the first one"
            raise LogError(
                f"topic {self._log.topic}: the model of order record {record.sequence} began "
                f"{began}, which is gone (retention), so the state cannot be rebuilt"
            )

    def _pass_foreign(self, record: OrderRecord) -> None:
        """Go behind a record of another model, while this one has not begun."""
        for topic, _, end in record.inputs:
            self._inputs.pass_over(topic, end)
        self._resume(record)
        self._at.passed(record)
        if self._begins(record):
            self._begin(record)

    def _begins(self, record: OrderRecord) -> bool:
        """Tell whether this engine's model begins behind a record."""
        shadow = record.shadow
        here = shadow is not None and shadow.since == record.sequence
        return here and shadow is not None and shadow.model == self._model

    def _begin(self, record: OrderRecord) -> None:
        """Begin behind a record that says so, with empty state, and where the input goes on."""
        for topic, offset in record.shadow.cursors if record.shadow else ():
            self._inputs.pass_over(topic, offset)
        self._at.begin(record.sequence)
        _LOG.info("the model begins here", sequence=record.sequence)

    def _replay(self, pending: list[tuple[OrderRecord, Batch]]) -> None:
        if not pending:
            return
        first = pending[0][0]
        size = sum(len(batch.inputs) for _, batch in pending)
        with self._doing.within(Step.REPLAYING, first.sequence, size, first.inputs):
            begun = time.monotonic()
            try:
                results = self._job.run([batch for _, batch in pending])
            except BrokenRecordError as error:
                broken = _broken(pending, error)
                text = f"order record {broken.sequence}, which {broken.engine} has processed"
                raise Diverged(
                    broken.sequence, self._base, f"{text}: {error}", broken=error.place
                ) from error
            took_s = time.monotonic() - begun
            self.lag.worked(took_s)
            self._size.replayed(size, took_s)
        for (record, batch), result in zip(pending, results, strict=True):
            if batch.checkpoint:
                self._agreement.begun(result.checkpoint)
            comparable = record.model == self._model and not _means_other_things(record)
            if comparable:
                self._agreement.heard(record)
            if comparable and result.digest() != record.digest:
                self._differs(
                    record,
                    f"{result.total} outputs with digest {result.digest()[:12]} here, "
                    f"{record.outputs} with {record.digest[:12]} from {record.engine} "
                    f"({record.runtime}; here {self._runtime})",
                )
            self._at.count(batch, result)
        self.replayed += len(pending)
        self._moved()


def _broken(pending: list[tuple[OrderRecord, Batch]], error: BrokenRecordError) -> OrderRecord:
    """Return the order record that a job has failed at, or the first one where nobody knows."""
    for record, _ in pending:
        for topic, start, end in record.inputs:
            if topic == error.topic and error.offset is not None and start <= error.offset < end:
                return record
    return pending[0][0]


def _means_other_things(record: OrderRecord) -> bool:
    """Tell whether a record was made by an espha that may compute other things."""
    return record.semantics not in (None, SEMANTICS)
