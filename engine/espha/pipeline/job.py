"""The batch job: order records and their inputs go in, output records come out."""

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructType

from espha.connectors.files import record_layout, record_style
from espha.connectors.topics import TopicPlan
from espha.model import Project
from espha.pipeline import worker
from espha.pipeline.fitting import REASON_BYTES, dead_letter_of, fits, shortened
from espha.pipeline.stream import (
    BROKEN,
    END,
    OPEN,
    OPENED,
    PAGE_BYTES,
    PUT,
    REFUSED,
    RESTORE_S,
    SKIP,
    TAKE,
    Answered,
    Asked,
    Names,
    Stream,
    Summed,
)
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, Restored, RestoreOrder
from espha.protocol.ends import when_ended
from espha.protocol.message import Message
from espha.protocol.order import Skip
from espha.protocol.records import (
    DIGEST_HEADER,
    ID_HEADER,
    REASON_HEADER,
    SIZE_HEADER,
    WINDOW_HEADER,
    Headers,
    MessageId,
)
from espha.protocol.sizes import CUT_BYTES, RECORD_BYTES, REPLAY_BYTES
from espha.records import catalyst as codec
from espha.recovery.plain import NotPlainError


class StateLostError(Exception):
    """The worker does not hold the state that a batch builds on; only a replay brings it back."""


class BrokenRecordError(Exception):
    """The kernel has failed on a record; its state is half changed, and this process must end.

    Attributes:
        topic, offset: the record; None: nobody knows which one of the batch.
    """

    def __init__(self, topic: str | None, offset: int | None, reason: str) -> None:
        place = f"offset {offset} of topic {topic}" if topic else "some record of the batch"
        super().__init__(f"{place}: {reason}")
        self.topic, self.offset, self.reason = topic, offset, reason

    @property
    def place(self) -> tuple[str, int] | None:
        """Topic and offset of the record; None: nobody knows which one of the batch."""
        return (self.topic, self.offset) if self.topic and self.offset is not None else None


class NotRestoredError(Exception):
    """A state could not be read this time, which says nothing about it."""


class Input(NamedTuple):
    """One input record: where it lies, and its value as it came."""

    topic: str
    offset: int
    value: bytes


class Output(NamedTuple):
    """One record that a batch writes."""

    topic: str
    value: bytes
    headers: Headers


class Batch(NamedTuple):
    """One step of the model."""

    expect: int | None
    """Sequence number that the state must stand for; None: start with empty state."""
    sequence: int
    clock: int
    """Milliseconds since 1970."""
    inputs: list[Input]
    skipped: tuple[Skip, ...] = ()
    """Those of them that are set aside: dead letters, which the model never sees."""
    checkpoint: CheckpointOrder | None = None
    """Have a forked process take the state as it is behind this batch."""


class Result(NamedTuple):
    """What one batch gives."""

    outputs: list[Output]
    """Empty where the JVM keeps them (`summed`)."""
    refused: int
    """Number of the outputs that are dead letters."""
    due: int | None = None
    """Clock (ms) at which the model has something to do without input; None: never."""
    summed: Summed | None = None
    """What the JVM says of outputs that did not come here."""
    checkpoint: CheckpointBegun | None = None
    """Whether the checkpoint that was asked for is under way."""

    @property
    def total(self) -> int:
        """Number of outputs, dead letters too."""
        return self.summed.outputs if self.summed else len(self.outputs)

    @property
    def waited_s(self) -> float:
        """For how long (s) the batch has waited for Kafka to take outputs."""
        return self.summed.waited_s if self.summed else 0.0

    def digest(self) -> str:
        """Return SHA-256 (hex) over all outputs, in order.

        They are counted in as topic, value, and each header's name and value, each of these behind
        its length (big-endian int64).
        """
        if self.summed:
            return self.summed.digest.hex()
        total = hashlib.sha256()
        for output in self.outputs:
            parts = [output.topic.encode(), output.value]
            parts += [part for key, value in output.headers for part in (key.encode(), value)]
            for part in parts:
                total.update(len(part).to_bytes(8, "big") + part)
        return total.hexdigest()


class BatchJob:
    """Runs batches of one model on one Spark session."""

    def __init__(
        self,
        session: SparkSession,
        xml: str,
        project: Project,
        plan: TopicPlan,
        *,
        exact: bool = False,
        collect: bool = True,
    ) -> None:
        """Start the job's query.

        Args:
            session: a session for `espha.pipeline.stream.Stream`.
            xml: the model, which workers read again.
            project: the same, read.
            plan: the topics.
            exact: write doubles with all the digits that they need.
            collect: have results bring the outputs; else the JVM counts and digests them, and
                sends them to Kafka where that is asked for.
        """
        self._plan = plan
        self.worker: int | None = None
        """Process id of the worker, as far as it is known."""
        self._worker_ended: Callable[[], None] | None = None
        self._collects = collect
        self._sources = [project.windows[path] for path in plan.inputs]
        self._outputs = [project.windows[path] for path in plan.outputs]
        self._source_of = {topic: index for index, topic in enumerate(plan.inputs.values())}
        self._model = worker.WorkerModel(
            xml=xml,
            sources=tuple(plan.inputs),
            layouts=tuple(record_layout(window) for window in self._sources),
            outputs=tuple(plan.outputs),
        )
        changes = {"precision": None} if exact else {}
        self._styles = [record_style(one).model_copy(update=changes) for one in self._outputs]
        names = Names(
            inputs=tuple(plan.inputs.values()),
            windows=self._model.sources,
            outputs=tuple(plan.outputs[path] for path in self._model.outputs),
            output_windows=self._model.outputs,
            order_log=plan.order_log,
            dead_letters=plan.dead_letters,
            headers=(ID_HEADER, WINDOW_HEADER, REASON_HEADER, SIZE_HEADER, DIGEST_HEADER),
            sizes=(RECORD_BYTES, CUT_BYTES, REASON_BYTES),
        )
        self._stream = Stream(session, f"{self._model} {plan} {exact}", self._query, names)

    def run(self, batches: list[Batch], transaction: int = 0) -> list[Result]:
        """Run batches one after the other; return their results in the same order.

        Args:
            batches: one or more.
            transaction: the JVM sends the outputs in it (`espha.pipeline.transactions`); 0: nobody
                sends them.

        Raises:
            StateLostError: the worker does not hold what the first batch expects.
            BrokenRecordError: the model fails on a record.
            espha.pipeline.channel.ChannelError: the query has failed.
        """
        if transaction and self._collects:
            raise ValueError("outputs that are collected are not sent")
        run = self._collect if self._collects else self._sum
        results: list[Result] = []
        for call in _calls(batches):
            results += run(call, transaction)
            order = call[-1].checkpoint
            if order:
                results[-1] = results[-1]._replace(checkpoint=self.checkpoint(order))
        if len(results) != len(batches):
            raise RuntimeError(f"{len(batches)} batches went in, {len(results)} came out")
        return results

    def _sum(self, batches: list[Batch], transaction: int) -> Iterator[Result]:
        every = iter(batches)
        for summed in self._stream.sum(self._asked(batches), transaction):
            answer = json.loads(summed.answer)
            if summed.broken is not None:
                raise _broken(_rows(batches)[summed.broken], answer)
            self._expect_held(answer, next(every))
            self._meet(answer["worker"])
            yield Result([], summed.refused, answer["due"], summed)

    def _collect(self, batches: list[Batch], _: int) -> Iterator[Result]:
        inputs = _rows(batches)
        answers = list(self._stream.call(self._asked(batches)))
        every = iter(batches)
        batch, outputs = next(every), list[Output]()
        for answered in answers:
            if answered.kind == BROKEN:
                raise _broken(inputs[answered.row], json.loads(answered.text or ""))
            if answered.kind != OPENED:
                outputs.append(self._output(batch, inputs[answered.row], answered))
                continue
            answer = json.loads(answered.text or "")
            self._expect_held(answer, batch)
            refused = sum(output.topic == self._plan.dead_letters for output in outputs)
            yield Result(outputs, refused, answer["due"])
            batch, outputs = next(every, batch), []

    def when_ended(self, jvm: Callable[[], None], worker: Callable[[], None]) -> None:
        """Have these called, from other threads, when the JVM or the worker ends; perhaps twice.

        Whoever waits for an answer hears of it, too; but the worker's end passes through Spark, and
        who waits for something else hears nothing.
        """
        self._worker_ended = worker
        self._stream.when_closed(jvm)

    def when_moved(self, then: Callable[[], None]) -> None:
        """Have `then` called now and then, in the caller's thread, while a long call gets on."""
        self._stream.when_moved(then)

    def _meet(self, worker: int) -> None:
        """Note who the worker is."""
        if worker != self.worker:
            self.worker = worker
            if self._worker_ended:
                when_ended(worker, self._worker_ended)

    def greet(self) -> None:
        """Make an empty call; it comes back when everything has started and passes rows on."""
        list(self._stream.call([]))

    def checkpoint(self, order: CheckpointOrder) -> CheckpointBegun:
        """Have a forked process of the worker take the state as it is now; see `Batch`."""
        return CheckpointBegun.model_validate_json(self._ask(TAKE, order))

    def restore(self, path: Path, offset: int, sequence: int) -> None:
        """Let the worker hold a state that was taken after order record `sequence`.

        Args:
            path: file with the state.
            offset: where in the file it begins.
            sequence: the order record.

        Raises:
            NotPlainError: it is not a state of this model.
            NotRestoredError: memory or the volume failed; the worker holds no state.
        """
        order = RestoreOrder(sequence=sequence, path=str(path), offset=offset)
        answer = Restored.model_validate_json(self._ask(PUT, order, RESTORE_S))
        if answer.passing:
            raise NotRestoredError(answer.error)
        if answer.error:
            raise NotPlainError(answer.error)

    def _ask(self, mark: int, order: Message, limit_s: float | None = None) -> str:
        (answer,) = self._stream.call([Asked(0, mark, order.encode())], limit_s)
        return answer.text or ""

    def close(self) -> None:
        """End the job; another one can take its place on the session."""
        self._stream.close()

    def _asked(self, batches: list[Batch]) -> Iterator[Asked]:
        row = 0
        for batch in batches:
            order = {"expect": batch.expect, "sequence": batch.sequence, "clock": batch.clock}
            yield Asked(row, OPEN, json.dumps(order).encode(), batch.sequence)
            row += 1
            skipped = {(topic, offset): reason for topic, offset, reason in batch.skipped}
            source_of = self._source_of
            for topic, offset, value in batch.inputs:
                source, text, original = source_of[topic], _text(value), None
                reason = skipped.get((topic, offset)) if skipped else None
                if reason is not None or text is not value:
                    original = (source, value)
                if reason is not None:
                    source, text = SKIP, reason.encode()
                yield _asked_of((row, source, text, offset, original))
                row += 1

    def _query(self, rows: DataFrame) -> DataFrame:
        schema = self._output_schema()
        kernel = worker.run_batches(self._model, to_arrow_schema(schema))
        parsed, dated = self._decoding()
        decoded = rows.select(*parsed).select(*dated)
        return decoded.mapInArrow(kernel, schema).select(*self._text_column())

    def _decoding(self) -> tuple[list[Column], list[Column]]:
        """Columns that parse the text of each source's records, and those that read dates in it."""
        kept = [sf.col("row"), sf.col("source"), sf.col("value")]
        # What lets a page leave; see PAGE_BYTES.
        ends = sf.col("source") == END
        last = sf.when(ends, sf.lit("-" * PAGE_BYTES)).otherwise("").alias("last")
        parsed, dated = [], []
        for index, window in enumerate(self._sources):
            name, layout = f"s{index}", self._model.layouts[index]
            text = codec.parse(window, layout, sf.col("value"))
            parsed.append(sf.when(sf.col("source") == index, text).alias(name))
            dates = codec.read_dates(window, layout, sf.col(name), sf.col("value"))
            dated.append(sf.when(sf.col("source") == index, dates).alias(name))
        return [*kept, *parsed], [*kept, *dated, last]

    def _text_column(self) -> list[Column]:
        text = sf.col("text")
        for index, window in enumerate(self._outputs):
            encoded = codec.encode(window.fields, self._styles[index], sf.col(f"w{index}"))
            text = sf.when(sf.col("kind") == index, encoded).otherwise(text)
        return [sf.col("row"), sf.col("ordinal"), sf.col("kind"), text.alias("text")]

    def _output(self, batch: Batch, entry: Input | None, answered: Answered) -> Output:
        # What time alone brings about comes from the order record, not from an input.
        origin, at = (
            (entry.topic, entry.offset) if entry else (self._plan.order_log, batch.sequence)
        )
        message_id = (ID_HEADER, MessageId(origin, at, answered.ordinal).encode())
        text = (answered.text or "").encode()
        dead_letters = self._plan.dead_letters
        if answered.kind != REFUSED:
            path = self._model.outputs[answered.kind]
            output = Output(self._plan.outputs[path], text, (message_id,))
            if fits(*output[1:]):
                return output
            return Output(dead_letters, *dead_letter_of(*output[1:], path))
        window = self._model.sources[self._source_of[entry.topic]].encode() if entry else b""
        headers = (message_id, (WINDOW_HEADER, window), (REASON_HEADER, text))
        value = entry.value if entry else b""
        aside = entry and any(entry[:2] == one[:2] for one in batch.skipped)
        if fits(value, headers) and not (aside and len(value) > CUT_BYTES):
            return Output(dead_letters, value, headers)
        return Output(dead_letters, *shortened(value, headers))

    def _expect_held(self, answer: dict[str, int | None], batch: Batch) -> None:
        if answer.get("sequence") != batch.sequence:
            raise StateLostError(
                f"the Spark worker holds the state after order record {answer.get('held')}, "
                f"order record {batch.sequence} builds on {batch.expect}"
            )

    def _output_schema(self) -> StructType:
        text, whole = StringType(), IntegerType()
        schema = StructType().add("row", whole).add("ordinal", whole).add("kind", whole)
        schema.add("text", text)
        for index, window in enumerate(self._outputs):
            event = StructType().add("opcode", text).add("flags", text)
            for place, field in enumerate(window.fields):
                event.add(f"f{place}", codec.KINDS[field.type])
            schema.add(f"w{index}", event)
        return schema


_asked_of: Final[Callable[[tuple[Any, ...]], Asked]] = partial(tuple.__new__, Asked)
"""A row of its parts, several times as fast as by name."""


def _broken(entry: Input | None, answer: dict[str, Any]) -> BrokenRecordError:
    if entry is None or not answer["named"]:
        return BrokenRecordError(None, None, answer["reason"])
    return BrokenRecordError(entry.topic, entry.offset, answer["reason"])


def _rows(batches: list[Batch]) -> list[Input | None]:
    """Return what the rows of a call are, place by place; None: an opening row."""
    return [entry for batch in batches for entry in (None, *batch.inputs)]


def _calls(batches: list[Batch]) -> Iterator[list[Batch]]:
    """Cut a list of batches so that each part has one, or inputs that are not too large.

    One with a checkpoint is the last of its part.
    """
    call, size = list[Batch](), 0
    for batch in batches:
        length = sum(len(entry.value) for entry in batch.inputs)
        if call and (call[-1].checkpoint or size + length > REPLAY_BYTES):
            yield call
            call, size = [], 0
        call.append(batch)
        size += length
    if call:
        yield call


def _text(value: bytes) -> bytes:
    """Return the value as UTF-8, which Catalyst takes for granted."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return value.decode("utf-8", "replace").encode()
    return value
