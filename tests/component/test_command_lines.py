"""Scripts with command lines of SAS Event Stream Processing, run as they are written."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from espha.checker.damage import compare
from espha.checker.watch import read_all
from espha.connectors.topics import topic_plan
from espha.kafka.writer import FencedWriter, Record
from espha.reader import read_project
from support.desk import Desk
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

MODEL = Path(__file__).parents[2] / "manifests" / "models" / "ha-project.xml"
PAIR = """\
kafka
{{
hostport = "{kafka}"
partition = "0"
initialoffset = "smallest"
metatopic="PairMeta"
}}
sas
{{
hotfailover=true
zookeeperhostport="{zookeeper}"
failovergroup="{group}"
}}
"""
ALONE = '{{\nkafka =\n{{\nhostport = "{kafka}"\n}}\nsas =\n{{\nprotobuf = false\n}}\n}}\n'


@pytest.fixture
def prefix(kafka: Kafka) -> str:
    """Topics of the model with a prefix of their own."""
    made = f"c{uuid.uuid4().hex[:8]}"
    kafka.make_topics(*topic_plan(read_project(MODEL.read_bytes()), made).all())
    return made


@pytest.fixture
def desk(tmp_path: Path, prefix: str) -> Iterator[Desk]:
    made = Desk(tmp_path, MODEL, prefix)
    try:
        yield made
    finally:
        made.stop()


def test_a_pair_of_publishers_goes_on_when_one_is_killed(
    desk: Desk, prefix: str, kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    cfg = PAIR.format(kafka=kafka.bootstrap, zookeeper=zookeeper.connect, group=prefix)
    (tmp_path / "pub.cfg").write_text(cfg)
    source = tmp_path / "in.csv"
    source.write_text("figures\nof memory\n")
    command = (
        'type=pub,url="dfESP://engine.example:61001/HA_Project/cq/memory",'
        f"fsname={source},fstype=csv,dateformat='%Y-%m-%d %H:%M:%S',header=2,"
        "growinginputfile=true,addcsvopcode=true,addcsvflags=normal,noautogenfield=true,"
        f"loglevel=trace,transport=kafka,transportconfigfile={tmp_path}/pub.cfg"
    )
    first = desk.start(f"-C {command}")
    topic = topic_plan(read_project(MODEL.read_bytes()), prefix).inputs["cq/memory"]

    def published() -> list[str]:
        return [each.value for each in read_all(kafka.bootstrap, topic)]

    expected: list[str] = []

    def write(count: int) -> None:
        with source.open("a") as file:
            for number in range(len(expected), len(expected) + count):
                file.write(f"{number},1,2,3\n")
                expected.append(f"I,N,,{number},1,2,3")

    write(500)
    wait_until(lambda: len(published()) == 500, 90, "the first one publishes")
    second = desk.start(f"-C {command}")
    wait_until(lambda: bool(desk.log(second)), 60, "the second one runs")
    write(500)
    desk.kill(first)
    write(500)
    wait_until(lambda: published()[-1:] == expected[-1:], 90, "the second one goes on")
    damage = compare(expected, published())
    assert damage.none, damage.first


def test_a_subscriber_writes_what_a_window_publishes(
    desk: Desk, prefix: str, kafka: Kafka, tmp_path: Path
) -> None:
    (tmp_path / "sub.cfg").write_text(ALONE.format(kafka=kafka.bootstrap))
    url = '"dfESP://engine.example:61001/HA_Project/cq/outbound?snapshot=false"'
    adapter = desk.start(
        f"-k sub -h {url} -f {tmp_path}/out.csv -t csv -l kafka -j {tmp_path}/sub.cfg"
    )
    topic = topic_plan(read_project(MODEL.read_bytes()), prefix).outputs["cq/outbound"]
    writer = FencedWriter(kafka.bootstrap, f"test-{uuid.uuid4().hex}")
    writer.fence()
    expected = [f"I,N,{number},1,2,3,4,5" for number in range(1000)]
    writer.commit(Record(topic, text.encode()) for text in expected)
    result = tmp_path / "out.csv"
    wait_until(
        lambda: result.exists() and result.read_text().count("\n") == 1000, 90, "every record"
    )
    assert result.read_text().splitlines() == expected
    assert adapter.poll() is None


def test_a_script_that_is_not_understood_ends_with_2(desk: Desk) -> None:
    process = desk.start("-k pub -h dfESP://a:1/HA_Project/cq/none -f x -Z")
    assert process.wait(60) == 2
    assert "option '-Z' is not known" in desk.log(process)
