"""Batches on a real Spark: what the codecs read and write, and what the worker holds."""

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

import pyspark
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from espha.connectors.topics import topic_plan
from espha.ha.progress_judge import PAGE_RECORDS
from espha.jvm import java_program
from espha.local.processes import family
from espha.model.types import formatter
from espha.pipeline import gateway, stream
from espha.pipeline.channel import ChannelError
from espha.pipeline.job import Batch, BatchJob, Input, Result, StateLostError
from espha.pipeline.session import start_jvm, worker_ended
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, CheckpointReport
from espha.protocol.order import Skip
from espha.protocol.sizes import CUT_BYTES, RECORD_BYTES
from espha.reader import read_project
from espha.recovery.pending import Pending
from espha.recovery.plain import NotPlainError
from support.models import SAMPLE, SUB, source, xml
from support.servers import JAR_CACHE

pytestmark = pytest.mark.component

SCHEMA = "id*:int64,a:int32,d:double,s:string,t:date,u:stamp"


def connector(direction: str, **properties: str) -> str:
    listed = "".join(
        f'<property name="{name}">{value}</property>'
        for name, value in {"type": direction, **properties}.items()
    )
    return (
        f'<connector class="kafka" name="{direction}"><properties>{listed}</properties></connector>'
    )


def through(
    spark: SparkSession,
    lines: list[str],
    pub: str,
    sub: str,
    *,
    schema: str = SCHEMA,
    attributes: str = 'insert-only="true"',
) -> Result:
    """Send texts through a source and a window that passes them on."""
    fields = "".join(
        f'<field name="{name.rstrip("*")}" type="{kind}" key="{str(name.endswith("*")).lower()}"/>'
        for name, kind in (part.split(":") for part in schema.split(","))
    )
    windows = source(schema, attributes, body=f"<connectors>{pub}</connectors>") + (
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


def test_texts_that_need_quotes(spark: SparkSession) -> None:
    """What would not read back alike stands in quotes: blanks at ends, too; nothing else does."""
    cells = ['" x"', '"x "', '"\tx"', '"a,b"', '"a""b"', '"a\nb"', "a b", "#a", "a'b", '"\\"']
    lines = [f"I,N,{place},{cell}" for place, cell in enumerate(cells)]
    schema = "id*:int64,s:string"
    result = through(spark, lines, connector("pub"), connector("sub"), schema=schema)
    assert texts(result) == [line.replace("I,N,", "I,N, ") for line in lines]


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


ALL = (
    "id*:int64,i:int32,d:double,m:money,s:string,t:date,u:stamp,b:blob,"
    "small:array(i32),large:array(i64),real:array(dbl)"
)
"""Every type of field."""


def test_every_type_in_csv(spark: SparkSession) -> None:
    """Values as `espha.model.types` reads and writes them; what is of no type is refused."""
    good = [
        "I,N,9223372036854775807,-2147483648,1e22,0.1,x,2026-01-02 03:04:05,-1,aGk=,"
        "[1;;3],[4],[.5;]",
        "i,,1,,.5,12,,1970-01-01 00:00:00.5,7,,[],[ 1 ; 2 ],",
    ]
    bad = [
        "I,N,2,2147483648,,,,,,,,,",
        "I,N,3,,,,,,,!,,,",
        "I,N,4,,,,,,,,[1.5],,",
        "I,N,5,,,,,,,,,4,",
        "I,N,6,,,,,,,,,,[x]",
        "I,N,7,,,,,2026-13-01 00:00:00,,,,,",
    ]
    result = through(spark, good + bad, connector("pub"), connector("sub"), schema=ALL)
    assert texts(result) == [
        "I,N, 9223372036854775807,-2147483648,10000000000000000000000.000000,0.100000,x,1767323045,"
        "-1,aGk=,[1;;3],[4],[0.500000;]",
        "I,N, 1,,0.500000,12.000000,,0,7,,[],[1;2],",
        *bad,
    ]
    reasons = [dict(output.headers)["espha-reason"].decode() for output in result.outputs[2:]]
    for name, reason in zip(("i", "b", "small", "large", "real", "t"), reasons, strict=True):
        assert f"field {name}: " in reason


def test_every_type_in_json(spark: SparkSession) -> None:
    """Arrays are arrays, a blob is base64."""
    kind = {"kafkatype": "json"}
    line = (
        '{"opcode":"I","id":1,"i":2,"d":0.5,"m":1.25,"s":"x","t":5,"u":6,"b":"aGk=",'
        '"small":[1,null],"large":[9223372036854775807],"real":[0.5]}'
    )
    result = through(spark, [line], connector("pub", **kind), connector("sub", **kind), schema=ALL)
    assert texts(result) == [line]


AUTOGEN = 'insert-only="true" autogen-key="true"'
ROW = "nr*:int64,a:int32,s:string"


@pytest.mark.parametrize(
    ("properties", "attributes", "line", "expected"),
    [
        ({"addcsvopcode": "true", "addcsvflags": "normal"}, "", "1,2,x", "I,N, 1,2,x"),
        (
            {"addcsvopcode": "true", "addcsvflags": "normal", "publishwithupsert": "true"},
            "",
            "1,2,x",
            "P,N, 1,2,x",
        ),
        ({"addcsvopcode": "true"}, "", "1,2,x", "I,N, 1,2,x"),
        ({"addcsvopcode": "true"}, "", "N,1,2,x", "I,N, 1,2,x"),
        ({"addcsvflags": "partialupdate"}, "", "p,1,2,", "P,P, 1,2,"),
        ({"noautogenfield": "true"}, AUTOGEN, "I,N,2,x", "I,N, 0,2,x"),
        (
            {"noautogenfield": "true", "addcsvopcode": "true", "addcsvflags": "normal"},
            AUTOGEN,
            '2,"x,y"',
            'I,N, 0,2,"x,y"',
        ),
        ({"csvfielddelimiter": ";"}, "", 'I;N;1;2;"x;,"', 'I,N, 1,2,"x;,"'),
        ({"csvfielddelimiter": "|", "addcsvflags": "normal"}, "", "I|1|2|x", "I,N, 1,2,x"),
        ({"csvfielddelimiter": r"\t", "addcsvopcode": "true"}, "", "1\t2\tx", "I,N, 1,2,x"),
    ],
)
def test_columns_that_a_connector_says_are_missing(
    spark: SparkSession, properties: dict[str, str], attributes: str, line: str, expected: str
) -> None:
    """Rows without opcode, flags or key, and with another delimiter; bad rows are refused."""
    lines = [line, "", line.replace("2", "two", 1)]
    pub, sub = connector("pub", **properties), connector("sub")
    result = through(spark, lines, pub, sub, schema=ROW, attributes=attributes)
    assert texts(result) == [expected, *lines[1:]]
    assert result.refused == 2


def test_decimals_of_doubles(spark: SparkSession) -> None:
    """The doubleprecision of the connector, for doubles wherever they are."""
    written = connector("sub", doubleprecision="2")
    schema = "id*:int64,d:double,real:array(dbl)"
    result = through(spark, ["I,N,1,2.345678,[0.125;]"], connector("pub"), written, schema=schema)
    assert texts(result) == ["I,N, 1,2.35,[0.13;]"]


def test_refusals_of_windows_behind_the_source_and_notifications(spark: SparkSession) -> None:
    """Who refuses is named, the others go on; messages of a notification are its events."""
    out = f"<connectors>{connector('sub')}</connectors>"
    windows = source("id*:int64,a:int32", 'index="pi_EMPTY"') + (
        f'<window-copy name="kept" index="pi_HASH">{out}</window-copy>'
        f'<window-filter name="all"><expression>a != 9</expression>{out}</window-filter>'
        '<window-notification name="told"><delivery-channels><log><deliver>gt($a,1)</deliver>'
        "<log-info><subject>row ${id}</subject></log-info></log></delivery-channels>"
        f"{out}</window-notification>"
    )
    text = xml(windows, '<edge source="in" target="kept all told"/>')
    project = read_project(text)
    plan = topic_plan(project, "t")
    lines = ["I,N,1,2", "I,N,1,3", "U,N,7,1"]
    inputs = [Input(plan.inputs["q/in"], place, line.encode()) for place, line in enumerate(lines)]
    with closing(BatchJob(spark, text, project, plan)) as job:
        result = job.run([Batch(None, 1, 0, inputs)])[0]
    letters = [output for output in result.outputs if output.topic == plan.dead_letters]
    assert result.refused == len(letters) == 2
    assert [letter.value.decode() for letter in letters] == lines[1:]
    assert [dict(letter.headers)["espha-reason"].decode() for letter in letters] == [
        "q/kept: insert of key 1, which exists",
        "q/kept: update of key 7, which does not exist",
    ]
    by_window = {
        path: [output.value.decode() for output in result.outputs if output.topic == topic]
        for path, topic in plan.outputs.items()
    }
    assert by_window["q/kept"] == ["I,N, 1,2"]
    assert by_window["q/told"] == ["I,N, 0,0,log,log,,row 1,,0", "I,N, 1,0,log,log,,row 1,,0"]
    assert by_window["q/all"] == ["I,N, 1,2", "I,N, 1,3", "U,N, 7,1"]
    ids = [dict(output.headers)["espha-id"] for output in result.outputs]
    assert len(set(ids)) == len(ids)


def test_what_catalyst_does_not_take_for_a_value(spark: SparkSession) -> None:
    """Words for null, numbers as texts, truth as a number: as files have it."""
    result = through(spark, ["I,N,1,2,.,,,", "I,N,2,,nan,,,"], connector("pub"), connector("sub"))
    assert texts(result) == ["I,N, 1,2,,,,", "I,N, 2,,,,,"]
    kind = {"kafkatype": "json"}
    lines = ['{"id":"1","a":true,"d":"2.5","t":"1970-01-01 00:00:05"}']
    result = through(spark, lines, connector("pub", **kind), connector("sub"))
    assert texts(result) == ["I,N, 1,1,2.500000,,5,"]


def test_no_record_of_too_many_cells_ends_the_job(spark: SparkSession) -> None:
    """Spark's parser takes 20,480; each life of each engine would end with it."""
    lines = ["I,N,1,2,2.5,a,5,6", "I,N," + "," * 21_000, "," * 100_000, "I,N,2,,,,,"]
    result = through(spark, lines, connector("pub"), connector("sub"))
    assert result.refused == 2
    assert texts(result)[0] == "I,N, 1,2,2.500000,a,5,6"
    assert texts(result)[-1] == "I,N, 2,,,,,"


def test_no_time_ends_the_job(spark: SparkSession) -> None:
    """Microseconds where seconds belong; what no year has is written as a number."""
    times = [0, 253_402_300_799, 253_402_300_800, 1_700_000_000_000_000, 2**63 - 1, -(2**63)]
    lines = [f"I,N,{place},{time}" for place, time in enumerate(times)]
    style = {"dateformat": "%Y-%m-%d"}
    for kind in ("date", "stamp"):
        schema = f"id*:int64,t:{kind}"
        result = through(spark, lines, connector("pub"), connector("sub", **style), schema=schema)
        written = [text.rpartition(",")[2] for text in texts(result)]
        wanted = formatter(kind, "%Y-%m-%d", 6)
        assert written == [wanted(time) for time in times]


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


def test_every_batch_is_answered_at_once(sample: BatchJob) -> None:
    """Whatever part of a page a batch fills, and though empty ones and large values follow it."""
    every = rows_of(2000)
    large = Input(every[0].topic, 7, b"I,N,,x" + b"y" * 70_001)
    sequence = 0
    for count in (1, *range(40, 75), 500, 2000):
        rows = every[:count]
        for inputs in [rows, [], [large], rows[:1], []]:
            expect, sequence = sequence or None, sequence + 1
            result = sample.run([Batch(expect, sequence, 0, inputs)])[0]
            assert len(result.outputs) == len(inputs)


def test_nothing_has_the_jvm_collect_all_its_garbage_now_and_then(spark: SparkSession) -> None:
    """Spark's cleaner would, every half hour, with everything standing still."""
    context: Any = spark.sparkContext._jsc
    assert context.sc().cleaner().isEmpty()


def test_the_jvm_forgets_addresses_of_pods_that_are_made_anew(spark: SparkSession) -> None:
    """With Java's own 30 s an engine looks for the broker that leads where nobody is any more."""
    jvm: Any = spark._jvm
    assert jvm.java.lang.System.getProperty("sun.net.inetaddr.ttl") == "1"


@pytest.mark.parametrize("master", ["local[1,2]", "local-cluster[1,1,512]", "local[0]", "yarn"])
def test_other_masters_are_refused_before_anything_starts(master: str) -> None:
    """With them an engine would wait for ever, for rows in another JVM or that came only once."""
    with pytest.raises(ValueError, match="shares one JVM"):
        start_jvm(master, JAR_CACHE / "engine")


def test_the_jvm_has_the_options_of_sparks_own_launcher() -> None:
    """A newer Spark may want others."""
    spark = Path(pyspark.__file__).parent
    launcher = ["org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit", "shell"]
    command = [java_program(), "-cp", str(spark / "jars" / "*"), *launcher]
    variables = {"SPARK_HOME": str(spark), "SPARK_SCALA_VERSION": "2.13", "SPARK_ENV_LOADED": "1"}
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    said = done.stdout.strip("\0\n").split("\0")
    options = said[said.index("-Xmx1g") + 1 : said.index(launcher[1])]
    assert tuple(options) == gateway.SPARK_OPTIONS


def test_a_jvm_that_does_not_start_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PySparkRuntimeError, match="gateway process exited"):
        gateway.start(["-Xmx1k"], [])
    assert "Too small maximum heap" in capfd.readouterr().out


def workers(spark: SparkSession) -> list[int]:
    """Return the processes of Spark's daemon of workers, parents first."""
    jvm = cast("Any", spark.sparkContext)._gateway.proc.pid
    return [pid for pid in family(jvm) if b"-m\0espha.pipeline.daemon" in cmdline(pid)]


def test_workers_import_compiled_packages(spark: SparkSession, sample: BatchJob) -> None:
    """Not those in Spark's archive of sources, which costs each start a second and a half."""
    sample.run([Batch(None, 1, 0, [])])
    pairs = Path(f"/proc/{workers(spark)[0]}/environ").read_bytes().split(b"\0")
    variables = dict(pair.split(b"=", 1) for pair in pairs if pair)
    assert b"pyspark.zip" not in variables[b"PYTHONPATH"]
    assert variables[b"PYTHONHASHSEED"] == b"0"


@pytest.mark.parametrize("name", ["core", "mapred", "yarn"])
def test_hadoop_reads_none_of_its_long_defaults(spark: SparkSession, name: str) -> None:
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    assert "espha-engine.jar" in loader.getResource(f"{name}-default.xml").toString()


def asked(job: BatchJob, order: CheckpointOrder, batches: Sequence[Batch]) -> CheckpointBegun:
    if not batches:
        return job.checkpoint(order)
    first, *others = batches
    begun = job.run([first._replace(checkpoint=order), *others])[0].checkpoint
    assert begun is not None
    return begun


def taken(job: BatchJob, path: Path, batches: Sequence[Batch] = ()) -> CheckpointReport:
    """Have the state written, now or behind the first of some batches; wait for the end."""
    reports: SimpleQueue[CheckpointReport] = SimpleQueue()
    while True:
        pending = Pending(str(path), 10)
        begun = asked(job, pending.order, batches)
        if not begun.busy:
            break
        pending.drop()  # the process before has told its report, and ends
    assert begun.error == ""
    pending.wait(reports.put)
    report = reports.get(timeout=60)
    assert report.error == ""
    assert (report.sequence, report.length) == (begun.sequence, path.stat().st_size - 10)
    assert report.checksum == hashlib.sha256(path.read_bytes()[10:]).hexdigest()
    return report


def test_a_state_can_be_taken_and_put_back(sample: BatchJob, tmp_path: Path) -> None:
    """The twentieth row is summed alike, whether its state came from a snapshot or not."""
    rows = rows_of(21)
    assert sample.run([Batch(None, 1, 0, rows[:20])])
    first = taken(sample, tmp_path / "first")
    assert first.sequence == 1
    expected = sample.run([Batch(1, 2, 0, rows[20:])])
    second = taken(sample, tmp_path / "second")
    sample.restore(tmp_path / "first", 10, 1)
    assert taken(sample, tmp_path / "again").state == first.state
    assert sample.run([Batch(1, 2, 0, rows[20:])]) == expected
    assert taken(sample, tmp_path / "again").state == second.state != first.state
    (tmp_path / "damaged").write_bytes(b"damaged")
    with pytest.raises(NotPlainError):
        sample.restore(tmp_path / "damaged", 0, 1)


def test_a_state_is_taken_behind_the_batch_that_asks_for_it(
    sample: BatchJob, tmp_path: Path
) -> None:
    """Though the worker goes on with others at once."""
    rows = rows_of(40)
    sample.run([Batch(None, 1, 0, rows[:20])])
    alone = taken(sample, tmp_path / "alone")
    batches = [Batch(None, 1, 0, rows[:20]), Batch(1, 2, 0, rows[20:30]), Batch(2, 3, 0, rows[30:])]
    among = taken(sample, tmp_path / "among", batches)
    assert (among.sequence, among.state) == (1, alone.state)
    assert taken(sample, tmp_path / "behind").sequence == 3


def test_an_engine_that_is_gone_costs_a_checkpoint(sample: BatchJob, tmp_path: Path) -> None:
    sample.run([Batch(None, 1, 0, rows_of(3))])
    pending = Pending(str(tmp_path / "state"))
    pending.drop()
    assert "FileNotFoundError" in sample.checkpoint(pending.order).error
    assert taken(sample, tmp_path / "next").sequence == 1


def test_records_that_no_topic_takes(spark: SparkSession) -> None:
    """An output that is too large is a dead letter in its place; large ones are as they are."""
    near = "Q,N,2," + "y" * 999_984
    quotes = '"' + '""' * 600_000 + '"'
    huge = '"' + '""' * (RECORD_BYTES // 2) + '"'
    lines = ["I,N,1,x", near, f"I,N,3,{quotes}", f"I,N,4,{huge}", "I,N,5,x"]
    schema = "id*:int64,s:string"
    result = through(spark, lines, connector("pub"), connector("sub"), schema=schema)
    whole = f"I,N, 4,{huge}".encode()
    assert [output.value for output in result.outputs] == [
        b"I,N, 1,x",
        near.encode(),
        f"I,N, 3,{quotes}".encode(),
        whole[:CUT_BYTES],
        b"I,N, 5,x",
    ]
    assert result.refused == 2
    headers = dict(result.outputs[3].headers)
    assert headers["espha-size"] == str(len(whole)).encode()
    assert headers["espha-window"] == b"q/out"


def refusing() -> tuple[str, list[bytes]]:
    """A model, and rows of which it refuses some: in its source, behind it, and no text at all."""
    out = f"<connectors>{connector('sub')}</connectors>"
    windows = source("id*:int64,s:string", 'index="pi_EMPTY"') + (
        f'<window-copy name="kept" index="pi_HASH">{out}</window-copy>'
        f'<window-copy name="again" index="pi_EMPTY">{out}</window-copy>'
    )
    rows = [b"I,N,1,x", b"I,N,1,y", b"U,N,7,z", b"I,N,2,\xff\xc3\xa9", b"\xfe,", b"I,N,3,\xc3\xa4"]
    return xml(windows, '<edge source="in" target="kept again"/>'), rows


def test_digests_are_alike_wherever_outputs_go(spark: SparkSession) -> None:
    """What the JVM digests is what outputs that are collected give: dead letters, what is cut."""
    text, rows = refusing()
    project = read_project(text)
    plan = topic_plan(project, "t")
    inputs = [Input(plan.inputs["q/in"], 5 * n, row) for n, row in enumerate(rows)]
    large = b"I,N,4," + b"y" * RECORD_BYTES
    aside, twice = (Input(inputs[0].topic, 100 + n, large) for n in range(2))
    skipped = (Skip(aside.topic, aside.offset, "r" * 2_000),)
    batches = [
        Batch(None, 1, 0, inputs[:3]),
        Batch(1, 2, 0, []),
        Batch(2, 3, 0, inputs[3:]),
        Batch(3, 4, 0, [aside, twice], skipped),
    ]
    found = []
    for collect in (True, False):
        with closing(BatchJob(spark, text, project, plan, collect=collect)) as job:
            found.append([(one.total, one.refused, one.digest()) for one in job.run(batches)])
    assert found[0] == found[1]
    assert [one[:2] for one in found[1]] == [(6, 2), (0, 0), (5, 1), (3, 3)]


@pytest.mark.long
def test_calls_are_bounded_by_bytes(sample: BatchJob, spark: SparkSession) -> None:
    """What a replay of large rows sends: 20,000 rows of 8,000 bytes, in batches of 100."""
    project = read_project(SAMPLE)
    row = b"I,N,,7,1,2," + b"3" * 8_000
    topic = "t.HA_Project.cq.memory.I"
    each = [Input(topic, place, row) for place in range(100)]
    batches = [Batch(n or None, n + 1, 0, each) for n in range(200)]
    with closing(BatchJob(spark, SAMPLE, project, topic_plan(project, "t"), collect=False)) as job:
        results = job.run(batches)
    assert [(one.total, one.refused) for one in results] == [(100, 100)] * 200


def test_an_answer_may_be_large(spark: SparkSession) -> None:
    """Outputs travel in parts: 120 MB of dead letters, through a heap of 512 MB."""
    project = read_project(SAMPLE)
    value = b"no row " * 30_000
    rows = [Input("t.HA_Project.cq.memory.I", place, value) for place in range(600)]
    with closing(BatchJob(spark, SAMPLE, project, topic_plan(project, "t"))) as job:
        (result,) = job.run([Batch(None, 1, 0, rows)])
    assert result.refused == len(rows)


def test_a_long_batch_tells_that_it_gets_on(spark: SparkSession) -> None:
    """Also where nothing comes out of its records."""
    text = xml(
        source("id*:int64,x:int64", 'insert-only="true" index="pi_EMPTY"')
        + '<window-python name="out" index="pi_EMPTY"><schema-string>id*:int64</schema-string>'
        "<code><![CDATA[\ndef create(data, context):\n    sum(range(200_000))\n"
        f"    return []\n]]></code>{SUB}</window-python>",
        '<edge source="in" target="out"/>',
    )
    project = read_project(text)
    plan = topic_plan(project, "t")
    inputs = [
        Input(plan.inputs["q/in"], place, b"I,N,%d,1" % place) for place in range(4 * PAGE_RECORDS)
    ]
    signs: list[int] = []
    with closing(BatchJob(spark, text, project, plan)) as job:
        job.when_moved(lambda: signs.append(1))
        assert job.run([Batch(None, 1, 0, inputs[:1])])[0].outputs == []
        few = len(signs)
        assert job.run([Batch(1, 2, 0, inputs)])[0].outputs == []
    assert len(signs) > few + 1


def test_a_query_that_does_not_move_is_given_up(
    spark: SparkSession, sample: BatchJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call waits without end: here the worker is frozen."""
    sample.run([Batch(None, 1, 0, [])])
    frozen = workers(spark)
    monkeypatch.setattr(stream, "LIMIT_S", 1)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ChannelError, match="has not moved"):
            sample.run([Batch(1, 2, 0, [])])
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)


def test_an_error_in_the_worker_is_told(spark: SparkSession) -> None:
    """With the kind of the error, by which an engine knows that its JVM is not to blame."""
    project = read_project(SAMPLE)
    job = BatchJob(spark, SAMPLE, project, topic_plan(project, "t"))
    with closing(job), pytest.raises(ChannelError, match="record came outside") as raised:
        list(job._stream.call([stream.Asked(0, 0, b"I,N,,1,1,2,3")]))
    assert worker_ended(raised.value)


def cmdline(pid: int) -> bytes:
    """Return the command of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()
