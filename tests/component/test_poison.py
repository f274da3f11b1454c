"""Records that engines do not survive: they are set aside, and all others are processed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.poisoned import EATS, EXITS, HANGS, RAISES, SPINS, environment
from component.test_failover import check_order_log
from component.test_writer import let_take
from espha.protocol.sizes import CUT_BYTES, RECORD_BYTES
from support.deployment import Deployment
from support.models import SUB, source, xml
from support.replicas import CALM, LIMIT_S
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

MODEL = xml(
    source("id*:int64,text:string", 'insert-only="true" index="pi_EMPTY"')
    + '<window-compute name="out" index="pi_EMPTY"><schema><fields>'
    '<field name="id" type="int64" key="true"/><field name="text" type="string"/>'
    "</fields></schema><output><field-expr>text</field-expr></output>"
    f"{SUB}</window-compute>",
    '<edge source="in" target="out"/>',
)
Deploy = Callable[..., Deployment]


@pytest.fixture
def deploy(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Deploy]:
    """Deploy a model on so many engines; they are not started."""
    with ExitStack() as ends:

        def made(**settings: str) -> Deployment:
            model = tmp_path / "model.xml"
            model.write_text(MODEL)
            deployment = Deployment(kafka, zookeeper, tmp_path, model, {**CALM, **settings})
            ends.callback(deployment.stop)
            return deployment

        yield made


def poisoned(deployment: Deployment) -> Deployment:
    """Let the kernel of its engines not survive some numbers."""
    deployment._environment.update(environment())
    return deployment


def row(number: int) -> str:
    return f"I,N,{number},x{number}"


def outcome(deployment: Deployment, rows: int, limit_s: float = LIMIT_S) -> list[str]:
    """Return the outputs when there are so many."""
    topic = deployment.plan.outputs["q/out"]
    wait_until(lambda: len(deployment.records(topic)) >= rows, limit_s, f"{rows} rows of output")
    return deployment.lines("q/out")


def outputs(numbers: list[int]) -> list[str]:
    return [f"I,N, {number},x{number}" for number in numbers]


@pytest.mark.parametrize(
    "poison",
    [RAISES, *(pytest.param(other, marks=pytest.mark.long) for other in (EXITS, EATS))],
    ids=["raises", "exits", "eats"],
)
def test_a_record_that_no_engine_survives_is_set_aside(deploy: Deploy, poison: int) -> None:
    """By an exception, or with the process: two engines die of it in turn, then it goes on."""
    deployment = poisoned(deploy())
    deployment.start(2)
    numbers = list(range(1, 31))
    deployment.publish("q/in", [row(n) for n in [*numbers[:17], poison, *numbers[17:]]])
    assert outcome(deployment, 30) == outputs(numbers)
    deployment.publish("q/in", [row(31)])
    assert outcome(deployment, 31)[-1] == "I,N, 31,x31"
    deployment.wait_level()
    (letter,) = deployment.records(deployment.plan.dead_letters)
    assert letter.value().decode() == row(poison)
    headers = dict(letter.headers() or [])
    assert headers["espha-window"] == b"q/in"
    assert headers["espha-reason"].startswith(b"set aside after it had ended 2 engines: ")
    assert ("this record is poison" in headers["espha-reason"].decode()) == (poison == RAISES)
    (skip,) = [skip for record in deployment.order_records() for skip in record.get("skipped", [])]
    assert skip[:2] == [deployment.plan.inputs["q/in"], 17]
    check_order_log(deployment)
    statuses = [engine.status() for engine in deployment.engines]
    assert [(told["quarantined"], told["diverged_total"]) for told in statuses] == [(1, 0)] * 2
    lives = sum(int(told["restarts"]) for told in statuses)
    assert lives == 2 if poison == RAISES else 4 <= lives <= 6


@pytest.mark.long
def test_a_record_without_an_end_is_set_aside_in_a_large_backlog(deploy: Deploy) -> None:
    """As soon as in a small batch: a batch says itself that it gets on."""
    deployment = poisoned(deploy(ESPHA_FAILURE_TIMEOUT_MS="500"))
    numbers = list(range(1, 5000))
    deployment.publish("q/in", [row(n) for n in [*numbers[:4000], SPINS, *numbers[4000:]]])
    deployment.start(2)
    assert outcome(deployment, 4999, 2 * LIMIT_S) == outputs(numbers)
    deployment.wait_level()
    (letter,) = deployment.records(deployment.plan.dead_letters)
    assert letter.value().decode() == row(SPINS)
    check_order_log(deployment)


@pytest.mark.long
def test_every_replica_sets_it_aside_alike(deploy: Deploy) -> None:
    """A life that begins later, from the log alone, has the same state and the same digests."""
    deployment = poisoned(deploy())
    deployment.start(1)
    deployment.publish("q/in", [row(1), row(RAISES), row(2)])
    assert outcome(deployment, 2) == outputs([1, 2])
    for snapshot in deployment.snapshots(deployment.engines[0]).files():
        snapshot.unlink()
    deployment.engines[0].kill_child()
    deployment.publish("q/in", [row(3)])
    assert outcome(deployment, 3) == outputs([1, 2, 3])
    deployment.wait_level()
    assert deployment.engines[0].told()["quarantined"] == 1
    assert len(deployment.records(deployment.plan.dead_letters)) == 1


def test_an_output_that_no_topic_takes_is_a_dead_letter(deploy: Deploy) -> None:
    """And so is a large record that cannot be read, whole with its headers."""
    deployment = deploy()
    deployment.start(2)
    near = "Q,N,2," + "y" * 999_984  # the client's own limit was 1,000,000 with headers
    quotes = '"' + '""' * (RECORD_BYTES // 2 - 20) + '"'  # doubled once more when written
    deployment.publish("q/in", [row(1), near, f"I,N,3,{quotes}", row(4)])
    assert outcome(deployment, 3)[1:] == [f"I,N, 3,{quotes}", "I,N, 4,x4"]
    deployment.wait_level()
    (letter,) = deployment.records(deployment.plan.dead_letters)
    assert letter.value().decode() == near
    assert [engine.told()["restarts"] for engine in deployment.engines] == [0, 0]
    assert [engine.told()["dead_letters"] for engine in deployment.engines] == [1, 1]


@pytest.mark.long
def test_a_record_whose_output_a_topic_does_not_take_is_set_aside(
    deploy: Deploy, kafka: Kafka
) -> None:
    """Somebody has lowered what the topic takes, below what engines and operator agree on."""
    deployment = deploy()
    let_take(kafka, deployment.plan.outputs["q/out"], 100_000)
    deployment.start(1)
    large = "I,N,2," + "y" * 150_000
    deployment.publish("q/in", [row(1), large, row(3)])
    assert outcome(deployment, 2) == outputs([1, 3])
    deployment.wait_level()
    (letter,) = deployment.records(deployment.plan.dead_letters)
    assert letter.value().decode() == large[:CUT_BYTES]
    assert b"RecordTooLarge" in dict(letter.headers() or [])["espha-reason"]
    check_order_log(deployment)


@pytest.mark.long
def test_a_record_whose_dead_letter_a_topic_does_not_take_is_set_aside(
    deploy: Deploy, kafka: Kafka
) -> None:
    """It cannot be read, and the letter that says so would be as large as itself."""
    deployment = deploy()
    let_take(kafka, deployment.plan.dead_letters, 200_000)
    deployment.start(1)
    large = "Q,N,2," + "y" * 300_000
    deployment.publish("q/in", [row(1), large, row(3)])
    assert outcome(deployment, 2) == outputs([1, 3])
    deployment.wait_level()
    (letter,) = deployment.records(deployment.plan.dead_letters)
    assert letter.value().decode() == large[:CUT_BYTES]
    headers = dict(letter.headers() or [])
    assert b"RecordTooLarge" in headers["espha-reason"]
    assert headers["espha-size"] == str(len(large)).encode()
    check_order_log(deployment)


@pytest.mark.long
def test_topics_that_take_too_little_are_named(deploy: Deploy, kafka: Kafka) -> None:
    deployment = deploy()
    topic = deployment.plan.dead_letters
    deployment.start(1)
    (engine,) = deployment.engines
    let_take(kafka, topic, 100_000)
    engine.kill_child()
    said = f"topic {topic} takes messages of 100000 bytes at most, and engines need 131072 there"
    wait_until(lambda: said in (engine.status().get("message") or ""), 120, "it says so")
    let_take(kafka, topic, 131_072)
    deployment.publish("q/in", [row(1)])
    assert outcome(deployment, 1) == outputs([1])


@pytest.mark.parametrize(
    "poison", [HANGS, pytest.param(SPINS, marks=pytest.mark.long)], ids=["hangs", "spins"]
)
def test_a_record_of_which_no_engine_comes_back_is_set_aside(deploy: Deploy, poison: int) -> None:
    """Its heartbeat goes on; supervisors end each engine that takes it, and it is named in time."""
    deployment = poisoned(deploy(ESPHA_FAILURE_TIMEOUT_MS="1500"))
    deployment.start(2)
    deployment.publish("q/in", [row(n) for n in (1, 2, poison, 3)])
    assert outcome(deployment, 3) == outputs([1, 2, 3])
    deployment.wait_level()
    (letter,) = deployment.records(deployment.plan.dead_letters)
    assert letter.value().decode() == row(poison)
    kills = [engine.told()["kills"] for engine in deployment.engines]
    assert sum(told.get("stuck", 0) for told in kills) >= 2
    check_order_log(deployment)
