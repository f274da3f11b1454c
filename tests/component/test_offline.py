"""`espha run` on Spark: the same results as of the kernel alone."""

from pathlib import Path

import pytest

from espha.kafka.reader import Offsets, read_range
from espha.kafka.writer import FencedWriter, Record
from espha.offline.command import DONE
from support.models import source, xml
from support.offline import Place
from support.servers import Kafka
from tools import jars

pytestmark = pytest.mark.component

ROWS = (
    'I,N,1,"a,b",30.1234567,,[1;2;3]',
    "U,N,1,a,35,1970-01-01 00:00:01.5,[]",
    "P,P,1,,36.5,17,",
    "I,N,x,a,1,,",
    'I,N,2,"q ""x"" ",1e22,,[7]',
    'I,N,2,"q ""x"" ",1e22,,[7]',
    'I,N,3,"two\nlines",1.0000005,-5,[ 1 ;;2]',
    "D,N,1,,,,",
    "SD,N,9,,,,",
)


def test_spark_and_the_kernel_alone_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces and connectors' files, rows that are refused, in one batch and in another."""
    monkeypatch.setenv("ESPHA_JARS", str(jars.directory("engine")))
    found = {}
    for engine in ("kernel", "spark"):
        place = Place(tmp_path / engine)
        place.folder.mkdir()
        place = Place(tmp_path / engine, "bars.xml")
        place.write("data/readings.csv", "header", "8;z;99.95;01.02.2024 03:04;[9]")
        rows = place.write("rows.csv", *ROWS)
        traces = [f"{name}={place.folder / name}.csv" for name in ("readings", "hot")]
        assert place.run(inputs=[f"readings={rows}"], traces=traces, engine=engine) == DONE
        assert "9 events in" not in place.said
        assert "10 events in, 2 bad; run by" in place.said
        found[engine] = [place.lines(name) for name in ("readings.csv", "hot.csv")]
        found[engine].append(place.lines("output/hot.csv"))
    assert found["spark"] == found["kernel"]
    assert len(found["kernel"][0]) == 10


def test_topics_of_a_model_are_read_and_written_where_their_broker_answers(
    tmp_path: Path, kafka: Kafka
) -> None:
    """Committed records come in, to the present end; what leaves goes to the other topic."""
    kafka.make_topics("run.in", "run.out")
    writer = FencedWriter(kafka.bootstrap, "run.test")
    writer.fence()
    for row in ("I,N,1,2.5", "I,N,x,1", "I,N,2,"):
        writer.commit([Record("run.in", row.encode())])
    Offsets(kafka.bootstrap).settled("run.in")

    def connector(topic: str, type_: str) -> str:
        values = {"type": type_, "kafkahostport": kafka.bootstrap, "kafkatopic": topic}
        listed = {**values, "kafkatype": "csv", "kafkainitialoffset": "smallest"}
        inner = "".join(f'<property name="{key}">{text}</property>' for key, text in listed.items())
        return (
            f'<connectors><connector class="kafka" name="{type_}"><properties>{inner}'
            "</properties></connector></connectors>"
        )

    place = Place(tmp_path)
    edge = '<edge source="in" target="out"/>'
    out = f'<window-copy name="out">{connector("run.out", "sub")}</window-copy>'
    place.write(
        "model.xml",
        xml(source("id*:int64,x:double", body=connector("run.in", "pub")) + out, edge),
    )
    assert place.run(engine="kernel") == DONE, place.said
    assert "3 events in, 1 bad" in place.said
    end = Offsets(kafka.bootstrap).end("run.out")
    written = [each.value().decode() for each in read_range(kafka.bootstrap, "run.out", 0, end)]
    assert written == ["I,N, 1,2.500000", "I,N, 2,"]
