"""Failover projects as users bring them: unchanged, on three engines, through take-overs."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.corpus import corpus_folder
from support.deployment import Deployment
from support.feeder import Feeder
from support.replicas import LIMIT_S, restarted
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

HERE = Path(__file__).parent
KAFKA1 = (corpus_folder() or HERE) / "iot-esp-ha-using-kafka/ESPScripts/kafka1.xml"


class Seed(NamedTuple):
    """A project: its file, its windows, a row of input, and the row that must come of it."""

    model: Path
    source: str
    output: str
    row: Callable[[int], str]
    expected: Callable[[int], str]


def last_20(number: int) -> range:
    """The values of the last twenty rows: each is the number of its row."""
    return range(max(0, number - 19), number + 1)


SEEDS = [
    # A copy that keeps 30 minutes, the events' number, and a sum of 20 into a whole number.
    Seed(
        KAFKA1,
        "cq1/kafka_incoming",
        "cq1/kafka_outgoing",
        lambda number: f"I,N,,{number % 9}.25,{number}",
        lambda number: (
            f"I,N, {number},{number % 9}.250000,{number}.000000,{number},{sum(last_20(number))}"
        ),
    ),
    # All parameters of Summary, and a functional window behind.
    Seed(
        HERE / "models/entropy.xml",
        "cq/memory",
        "cq/outbound",
        lambda number: f"I,N,,{number}",
        lambda number: (
            f"I,N, {number},{number},{sum(last_20(number))},"
            f"{sum(last_20(number)) / len(last_20(number)):.6f}"
        ),
    ),
]


@pytest.fixture(
    params=[SEEDS[0], *(pytest.param(seed, marks=pytest.mark.long) for seed in SEEDS[1:])],
    ids=lambda seed: seed.model.stem,
)
def seed(request: pytest.FixtureRequest) -> Seed:
    made: Seed = request.param
    if not made.model.is_file():
        pytest.skip("there is no corpus in ../shared/corpus, and ESPHA_CORPUS names none")
    return made


@pytest.fixture
def deployment(
    seed: Seed, kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> Iterator[Deployment]:
    made = Deployment(kafka, zookeeper, tmp_path, seed.model)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_project_of_a_user_loses_and_doubles_nothing(seed: Seed, deployment: Deployment) -> None:
    """Two engine processes die under load, one after the other; the output is exact."""
    topic = deployment.plan.outputs[seed.output]
    rows = ((seed.source, seed.row(number)) for number in count())

    def wait_for(number: int) -> None:
        wait_until(
            lambda: len(deployment.records(topic)) >= number, LIMIT_S, f"{number} rows came out"
        )

    with Feeder(deployment, rows, rate=50) as feeder:
        for _ in range(2):
            wait_for(feeder.sent + 25)
            active = deployment.active()
            again = restarted(active)
            active.kill_child()
            again()
            deployment.wait_in_sync()
        sent = feeder.stop()
    wait_for(sent)
    assert deployment.lines(seed.output) == [seed.expected(number) for number in range(sent)]
    assert deployment.order_records()[-1]["epoch"] >= 3
