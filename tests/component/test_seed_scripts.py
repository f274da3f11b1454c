"""Failover scripts as users have them: as written, with our names for the hosts and folders."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from conformance.corpus import corpus_folder
from support.deployment import Deployment
from support.desk import Desk
from support.replicas import restarted
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

SCRIPTS: Final = (corpus_folder() or Path(__file__).parent) / "iot-esp-ha-using-kafka/ESPScripts"
PUBLISHER: Final = "start-esp-pub-fs-adapter.sh"
SUBSCRIBER: Final = "start-esp-sub-fs-adapter.sh"
GENERATOR: Final = "create-data.sh"
HOST: Final = "iotdemo.na.sas.com"
VMSTAT: Final = """\
#!/bin/sh
echo -n x >> {calls}
number=$(( 1000 + $(wc -c < {calls}) ))
printf '%13d M used memory\\n%13d M free memory\\n' $number $number
"""
"""Figures that a test knows beforehand: how often it was called."""
HEADER_ROWS: Final = 1
"""The publisher skips two lines, and the generator writes one before its rows."""


class Scripts:
    """The scripts in a folder of the test's own."""

    def __init__(self, deployment: Deployment, zookeeper: ZooKeeper, folder: Path) -> None:
        """Copy them into `folder`, with our names for what they name."""
        folder.mkdir()
        self.folder = folder
        self.desk = Desk(folder, SCRIPTS / "kafka1.xml", deployment.name)
        self.desk.install("vmstat", VMSTAT.format(calls=folder / "calls"))
        ours = {
            f"{HOST}:9092": deployment.kafka.bootstrap,
            f"{HOST}:2181": zookeeper.connect,
            "/tmp/": f"{folder}/",
            "/home/sas/kafka/": f"{folder}/",
        }
        for name in (PUBLISHER, SUBSCRIBER, GENERATOR, "kafkapub.cfg", "kafkasub.cfg"):
            text = (SCRIPTS / name).read_text()
            for theirs, mine in ours.items():
                text = text.replace(theirs, mine)
            (folder / name).write_text(text)

    def run(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a script."""
        return self.desk.run(["bash", str(self.folder / name), *arguments])

    @property
    def result(self) -> Path:
        """What the subscriber writes."""
        return self.folder / "dstat-out.csv"

    def written(self) -> int:
        """Return how many bytes of the result are certain."""
        position = self.folder / "dstat-out.csv.position"
        return int(json.loads(position.read_text())["length"]) if position.exists() else 0


def expected(rows: int) -> list[str]:
    """Return what must come of so many rows of the generator, of which the first is skipped."""
    used = [1000 + 2 * row + 1 for row in range(HEADER_ROWS, rows)]
    return [
        f"I,N, {number},{figure}.000000,{figure + 1}.000000,{number},"
        f"{sum(one + 1 for one in used[max(0, number - 19) : number + 1])}"
        for number, figure in enumerate(used)
    ]


@pytest.fixture
def deployment(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Deployment]:
    model = SCRIPTS / "kafka1.xml"
    if not model.is_file():
        pytest.skip("there is no corpus in ../shared/corpus, and ESPHA_CORPUS names none")
    made = Deployment(kafka, zookeeper, tmp_path, model)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def scripts(deployment: Deployment, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Scripts]:
    made = Scripts(deployment, zookeeper, tmp_path / "scripts")
    try:
        yield made
    finally:
        made.desk.stop()


def test_the_scripts_lose_and_double_nothing(scripts: Scripts, deployment: Deployment) -> None:
    """An engine and a publisher die; the subscriber's script runs twice, and removes its result."""
    rows = 400
    subscriber = scripts.run(SUBSCRIBER)
    scripts.run(GENERATOR, "0.02", str(rows))
    publisher = scripts.run(PUBLISHER)

    def wait_for(count: int, files: int) -> None:
        wait_until(
            lambda: lines(scripts.result) >= count,
            120,
            f"{count} rows in result {files}",
            moved=lambda: lines(scripts.result),
        )

    wait_for(50, 1)
    active = deployment.active()
    again = restarted(active)
    active.kill_child()
    wait_for(100, 1)
    scripts.desk.kill(publisher)
    scripts.run(PUBLISHER)
    wait_for(150, 1)
    scripts.desk.kill(subscriber)
    first = scripts.result.read_bytes()[: scripts.written()].decode().splitlines()
    subscriber = scripts.run(SUBSCRIBER)
    # Until then the result is still that of the first one, and may have as many rows.
    wait_until(
        lambda: "a new one begins" in scripts.desk.log(subscriber), 120, "the result is removed"
    )
    wait_for(rows - HEADER_ROWS - len(first), 2)
    again()
    assert first + scripts.result.read_text().splitlines() == expected(rows)
    deployment.wait_in_sync()
    assert deployment.order_records()[-1]["epoch"] >= 2


def lines(path: Path) -> int:
    """Count the lines of a file; there are none while it is not there."""
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0
