"""The batch job: order records and their inputs go in, output records come out."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from espha.model import Project, model_digest
from espha.model.topics import TopicPlan
from espha.pipeline import codec, worker
from espha.pipeline.plain import NotPlainError

_INPUT = pa.schema([("row", pa.int32()), ("source", pa.int32()), ("value", pa.string())])


class StateLostError(Exception):
    """The worker does not hold the state that a batch builds on; only a replay brings it back."""


class Input(NamedTuple):
    """One input record: where it lies, and its value as it came."""

    topic: str
    offset: int
    value: bytes


class Output(NamedTuple):
    """One record that a batch writes."""

    topic: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class Batch(NamedTuple):
    """One step of the model."""

    expect: int | None
    """Sequence number that the state must stand for; None: start with empty state."""
    sequence: int
    clock: int
    """Milliseconds since 1970."""
    inputs: list[Input]


class Result(NamedTuple):
    """What one batch gives."""

    outputs: list[Output]
    refused: int
    """Number of the outputs that are dead letters."""

    def digest(self) -> str:
        """Return SHA-256 (hex) over all outputs, in order."""
        total = hashlib.sha256()
        for output in self.outputs:
            parts = [output.topic.encode(), output.value]
            parts += [part for key, value in output.headers for part in (key.encode(), value)]
            for part in parts:
                total.update(len(part).to_bytes(8, "big") + part)
        return total.hexdigest()


class BatchJob:
    """Runs batches of one model on one Spark session, each call as one job."""

    def __init__(self, session: SparkSession, xml: str, project: Project, plan: TopicPlan) -> None:
        self._session = session
        self._plan = plan
        self._sources = [project.windows[path] for path in plan.inputs]
        self._outputs = [project.windows[path] for path in plan.outputs]
        self._source_of = {topic: index for index, topic in enumerate(plan.inputs.values())}
        self._model = worker.WorkerModel(
            xml=xml,
            digest=model_digest(project),
            sources=tuple(plan.inputs),
            formats=tuple(codec.record_format(window, "pub") for window in self._sources),
            outputs=tuple(plan.outputs),
        )
        self._schema = self._output_schema()
        self._kernel = worker.run_batches(self._model, self._arrow_schema())
        # Columns belong to no data frame: made once, since each costs calls into the JVM.
        self._parsed, self._dated = self._decoding()
        self._text = self._text_column()

    def run(self, batches: list[Batch]) -> list[Result]:
        """Run batches one after the other; return their results in the same order.

        Raises:
            StateLostError: the worker does not hold what the first batch expects.
        """
        rows, inputs = self._table(batches)
        answer = self._plan_job(rows).toArrow()
        results: list[Result] = []
        outputs: list[Output] = []
        for row, ordinal, kind, text in zip(
            *(answer.column(name).to_pylist() for name in ("row", "ordinal", "kind", "text")),
            strict=True,
        ):
            if kind != worker.OPENED:
                outputs.append(self._output(inputs[row], ordinal, kind, text))
                continue
            self._expect_held(json.loads(text), batches[len(results)])
            refused = sum(output.topic == self._plan.dead_letters for output in outputs)
            results.append(Result(outputs, refused))
            outputs = []
        if len(results) != len(batches):
            raise RuntimeError(f"{len(batches)} batches went in, {len(results)} came out")
        return results

    def snapshot(self) -> tuple[int | None, bytes]:
        """Return the sequence number that the worker's state stands for, and the state.

        Raises:
            NotPlainError: a window keeps what no snapshot can hold; the text names it.
        """
        answer, parts = self._move(worker.state_out(self._model), [b""])
        return answer["sequence"], b"".join(parts)

    def restore(self, body: bytes, sequence: int) -> None:
        """Let the worker hold a state that `snapshot` returned for `sequence`.

        Raises:
            NotPlainError: it is no state of this model.
        """
        self._move(worker.state_in(self._model, sequence), list(worker.cut(body)))

    def _move(
        self, run: Callable[..., Iterator[pa.RecordBatch]], parts: list[bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        rows = pa.table([pa.nulls(len(parts), pa.string()), parts], schema=worker.STATE_ROWS)
        frame = self._session.createDataFrame(rows).coalesce(1)
        table = frame.mapInArrow(run, "note string, part binary").toArrow()
        (note,) = filter(None, table.column("note").to_pylist())
        answer = json.loads(note)
        if "error" in answer:
            raise NotPlainError(answer["error"])
        return answer, [part for part in table.column("part").to_pylist() if part]

    def _table(self, batches: list[Batch]) -> tuple[pa.Table, list[Input | None]]:
        inputs: list[Input | None] = []
        sources: list[int] = []
        values: list[str] = []
        for batch in batches:
            order = {"expect": batch.expect, "sequence": batch.sequence, "clock": batch.clock}
            inputs.append(None)
            sources.append(worker.OPEN)
            values.append(json.dumps(order))
            inputs += batch.inputs
            sources += [self._source_of[entry.topic] for entry in batch.inputs]
            values += [entry.value.decode("utf-8", "replace") for entry in batch.inputs]
        columns = [list(range(len(inputs))), sources, values]
        return pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, _INPUT, strict=True)],
            schema=_INPUT,
        ), inputs

    def _plan_job(self, rows: pa.Table) -> DataFrame:
        frame = self._session.createDataFrame(rows)
        parsed = frame.coalesce(1).select(*self._parsed)
        done = parsed.select(*self._dated).mapInArrow(self._kernel, self._schema)
        return done.select(*self._text)

    def _decoding(self) -> tuple[list[Column], list[Column]]:
        """Columns that parse the text of each source's records, and those that read dates in it."""
        kept = [sf.col("row"), sf.col("source"), sf.col("value")]
        parsed, dated = [], []
        for index, window in enumerate(self._sources):
            name = f"s{index}"
            text = codec.parse(window, sf.col("value"))
            parsed.append(sf.when(sf.col("source") == index, text).alias(name))
            dates = codec.read_dates(window, sf.col(name), sf.col("value"))
            dated.append(sf.when(sf.col("source") == index, dates).alias(name))
        return [*kept, *parsed], [*kept, *dated]

    def _text_column(self) -> list[Column]:
        text = sf.col("text")
        for index, window in enumerate(self._outputs):
            encoded = codec.encode(window, sf.col(f"w{index}"))
            text = sf.when(sf.col("kind") == index, encoded).otherwise(text)
        return [sf.col("row"), sf.col("ordinal"), sf.col("kind"), text.alias("text")]

    def _output(self, entry: Input | None, ordinal: int, kind: int, text: str) -> Output:
        if entry is None:
            raise RuntimeError("an opening row cannot have outputs")
        message_id = ("espha-id", f"{entry.topic}:{entry.offset}:{ordinal}".encode())
        if kind != worker.REFUSED:
            topic = self._plan.outputs[self._model.outputs[kind]]
            return Output(topic, text.encode(), (message_id,))
        window = self._model.sources[self._source_of[entry.topic]]
        headers = (message_id, ("espha-window", window.encode()), ("espha-reason", text.encode()))
        return Output(self._plan.dead_letters, entry.value, headers)

    def _expect_held(self, answer: dict[str, int | None], batch: Batch) -> None:
        if answer.get("sequence") != batch.sequence:
            raise StateLostError(
                f"the Spark worker holds the state after order record {answer.get('held')}, "
                f"order record {batch.sequence} builds on {batch.expect}"
            )

    def _output_schema(self) -> StructType:
        windows = [
            f"w{index} struct<opcode:string,flags:string,"
            + ",".join(
                f"f{place}:{codec.SQL_TYPES[field.type]}"
                for place, field in enumerate(window.fields)
            )
            + ">"
            for index, window in enumerate(self._outputs)
        ]
        return StructType.fromDDL(
            ", ".join(["row int, ordinal int, kind int, text string", *windows])
        )

    def _arrow_schema(self) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self._schema)
