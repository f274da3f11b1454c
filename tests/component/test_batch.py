"""Batches on a real Spark: what the codecs read and write, and what the worker holds."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pyspark.sql import SparkSession

from espha.model import read_project
from espha.model.topics import topic_plan
from espha.pipeline.job import Batch, BatchJob, Input, Result, StateLostError
from espha.pipeline.plain import NotPlainError
from espha.pipeline.session import open_session
from espha.pipeline.stream import PAGE_ROWS
from support.models import SAMPLE, source, xml
from support.servers import JAR_CACHE

pytestmark = pytest.mark.component

SCHEMA = "id*:int64,a:int32,d:double,s:string,t:date,u:stamp"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """An engine's session."""
    session = open_session("local[1]", JAR_CACHE / "engine")
    yield session
    session.stop()


def connector(direction: str, **properties: str) -> str:
    listed = "".join(
        f'<property name="{name}">{value}</property>'
        for name, value in {"type": direction, **properties}.items()
    )
    return (
        f'<connector class="kafka" name="{direction}"><properties>{listed}</properties></connector>'
    )


def through(spark: SparkSession, lines: list[str], pub: str, sub: str) -> Result:
    """Send texts through a source and a window that passes them on."""
    fields = "".join(
        f'<field name="{name.rstrip("*")}" type="{kind}" key="{str(name.endswith("*")).lower()}"/>'
        for name, kind in (part.split(":") for part in SCHEMA.split(","))
    )
    windows = source(SCHEMA, 'insert-only="true"', body=f"<connectors>{pub}</connectors>") + (
        f'<window-functional name="out"><schema><fields>{fields}</fields></schema>'
        f"<connectors>{sub}</connectors></window-functional>"
    )
    text = xml(windows, '<edge source="in" target="out"/>')
    project = read_project(text)
    plan = topic_plan(project, "t")
    inputs = [Input(plan.inputs["q/in"], place, line.encode()) for place, line in enumerate(lines)]
    with closing(BatchJob(spark, text, project, plan)) as job:
        return job.run([Batch(None, 1, 0, inputs)])[0]


def texts(result: Result) -> list[str]:
    return [output.value.decode() for output in result.outputs]


def test_csv_in_and_out(spark: SparkSession) -> None:
    """Quotes, nulls, six decimals; the id of a record is where it came from."""
    lines = ['I,N,1,2,2.5,"a, ""b""",5,6', "i,n,2,,,,,"]
    result = through(spark, lines, connector("pub"), connector("sub"))
    assert texts(result) == ['I,N, 1,2,2.500000,"a, ""b""",5,6', "I,N, 2,,,,,"]
    assert result.outputs[1].headers == (("espha-id", b"t.p.q.in.I:1:0"),)
    assert result.refused == 0


def test_dates_by_the_connectors_format(spark: SparkSession) -> None:
    """The dateformat is tried after whole seconds; text that is neither is refused."""
    written = connector("pub", dateformat="%Y-%m-%d %H:%M:%S")
    lines = ["I,N,1,,,,2026-01-02 03:04:05,17", "I,N,2,,,,60,", "I,N,3,,,,yesterday,"]
    result = through(spark, lines, written, connector("sub", dateformat="%d.%m.%Y"))
    assert texts(result) == [
        "I,N, 1,,,,02.01.2026,01.01.1970",
        "I,N, 2,,,,01.01.1970,",
        "I,N,3,,,,yesterday,",
    ]
    assert result.refused == 1
    assert dict(result.outputs[2].headers)["espha-window"] == b"q/in"


def test_json_in_and_out(spark: SparkSession) -> None:
    """Objects by field name; a missing opcode is an insert."""
    kind = {"kafkatype": "json"}
    lines = ['{"id":1,"a":2,"d":2.5,"s":"x","t":5}', '{"opcode":"I","id":"x"}', "{"]
    result = through(spark, lines, connector("pub", **kind), connector("sub", **kind))
    assert texts(result) == [
        '{"opcode":"I","id":1,"a":2,"d":2.5,"s":"x","t":5,"u":null}',
        *lines[1:],
    ]
    assert result.refused == 2


@pytest.fixture
def sample(spark: SparkSession) -> Iterator[BatchJob]:
    """The sample model's job."""
    project = read_project(SAMPLE)
    with closing(BatchJob(spark, SAMPLE, project, topic_plan(project, "t"))) as job:
        yield job


def rows_of(count: int) -> list[Input]:
    """Rows of the sample model, numbered from 0."""
    topic = "t.HA_Project.cq.memory.I"
    return [Input(topic, place, b"I,N,,%d,1,2,3" % place) for place in range(count)]


def test_a_batch_refuses_another_state(sample: BatchJob) -> None:
    """State is never silently empty: a batch runs only on the state that it builds on."""
    rows = rows_of(3)
    first = sample.run([Batch(None, 1, 0, rows[:1]), Batch(1, 2, 0, rows[1:2])])
    assert [texts(result) for result in first] == [
        ["I,N, 0,0,1,2,3,0.000000"],
        ["I,N, 1,1,1,2,3,1.000000"],
    ]
    with pytest.raises(StateLostError, match="after order record 2, order record 6 builds on 5"):
        sample.run([Batch(5, 6, 0, rows[2:])])
    assert texts(sample.run([Batch(2, 3, 0, rows[2:])])[0]) == ["I,N, 2,2,1,2,3,3.000000"]


def test_cutting_into_batches_changes_nothing(sample: BatchJob) -> None:
    """I3: the outputs of many batches in one call, or of one batch, are the same."""
    rows = rows_of(60)
    whole = sample.run([Batch(None, 1, 0, rows)])[0]
    cut = sample.run([Batch(n or None, n + 1, 0, rows[7 * n : 7 * n + 7]) for n in range(9)])
    assert [output for result in cut for output in result.outputs] == whole.outputs


@pytest.mark.parametrize("count", [*range(PAGE_ROWS - 4, PAGE_ROWS + 2), 3 * PAGE_ROWS, 2000])
def test_every_batch_is_answered_at_once(sample: BatchJob, count: int) -> None:
    """Whatever part of a page a batch fills, and though empty ones and large values follow it."""
    rows = rows_of(count)
    large = Input(rows[0].topic, 7, b"I,N,,x" + b"y" * 70_001)
    for number, inputs in enumerate([rows, [], [large], rows[:1], []]):
        result = sample.run([Batch(number or None, number + 1, 0, inputs)])[0]
        assert len(result.outputs) == len(inputs)


def test_a_state_can_be_taken_and_put_back(sample: BatchJob) -> None:
    """The twentieth row is summed alike, whether its state came from a snapshot or not."""
    rows = rows_of(21)
    assert sample.run([Batch(None, 1, 0, rows[:20])])
    sequence, body = sample.snapshot()
    assert sequence == 1
    first = sample.run([Batch(1, 2, 0, rows[20:])])
    sample.restore(body, 1)
    assert sample.run([Batch(1, 2, 0, rows[20:])]) == first
    with pytest.raises(NotPlainError):
        sample.restore(b"damaged", 1)
    assert sample.snapshot()[0] == 2
