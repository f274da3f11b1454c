"""Brokers as espha sets them: which one leads, and which one controls."""

import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from espha.jvm import java_program
from espha.kafka.reader import Ends, LogError, Offsets
from espha.kafka.writer import FencedWriter, Record
from espha.protocol.brokers import LEADER, TRANSACTION_PARTITIONS, TRANSACTION_TOPIC
from espha_operator.reconcile import brokers
from espha_operator.reconcile.rolling import Brokers
from support.servers import BRIEF, JAR_CACHE, Kafka, free_ports, wait_until

pytestmark = pytest.mark.component

NEVER = "600000"
"""In ms: no test takes as long."""
NO_TIMEOUT = {
    "broker.session.timeout.ms": NEVER,
    "controller.quorum.fetch.timeout.ms": NEVER,
    "replica.lag.time.max.ms": NEVER,
}


def test_one_broker_leads_and_another_one_controls(kafka: Kafka) -> None:
    """The death of the broker that leads must not cost the controller, too."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    kafka.make_topics(name)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})

    def leaders() -> list[int]:
        """Return those that a broker knows of; one may know a new topic before the others."""
        topics = admin.list_topics(timeout=10).topics
        made = [topics[each] for each in (name, TRANSACTION_TOPIC) if each in topics]
        return [each.leader for topic in made for each in topic.partitions.values()]

    everywhere = [LEADER] * (1 + TRANSACTION_PARTITIONS)
    wait_until(lambda: leaders() == everywhere, 60, "the first one leads everything")
    wait_until(kafka.whole, 60, "all replicas in sync")
    controller = kafka.controller()
    assert controller is not None
    assert controller is not kafka.servers[LEADER]


def test_a_question_to_a_broker_that_is_gone_takes_no_processor(tmp_path: Path) -> None:
    """What remains needs it to elect a leader; the admin client took two of them."""
    kafka = Kafka(tmp_path, 3)
    try:
        kafka.start()
        kafka.make_topics("asked")
        offsets = Offsets(kafka.bootstrap)
        assert offsets.ends("asked") == Ends(0, 0)
        for server in kafka.servers[:2]:  # the last one names the dead leader, with no controller
            server.kill()
        began, used = time.monotonic(), time.process_time()
        with pytest.raises(LogError, match="topic asked"):
            offsets.end("asked", limit_s=3)
        used, passed = time.process_time() - used, time.monotonic() - began
    finally:
        kafka.stop()
    assert used < passed / 4


def test_the_operator_sees_which_broker_may_go(kafka: Kafka) -> None:
    """A frozen broker's port is open: that it does not answer is seen at once.

    That it has left, and lags, the others say later.
    """
    kafka.make_topics(f"topic-{uuid.uuid4().hex[:8]}")
    wait_until(kafka.whole, 60, "all replicas in sync")
    controller = kafka.controller()
    assert controller is not None
    number = kafka.servers.index(controller)
    addresses = [("127.0.0.1", server.port) for server in kafka.servers]

    def look() -> Brokers:
        return brokers.look(kafka.bootstrap, [addresses[LEADER]])

    well = Brokers(alive=(0, 1, 2), controller=number)
    wait_until(lambda: look() == well, 60, "all is well")
    victim = next(one for one in (1, 2) if one != number)
    kafka.servers[victim].signal(signal.SIGSTOP)
    try:
        # All others still count on it.
        assert "does not say" in brokers.look(kafka.bootstrap, addresses).error
        wait_until(lambda: look().lagging == (victim,), 60, "the frozen one lags")
        wait_until(lambda: look().behind != (), 60, "copies are missing")
        wait_until(lambda: victim not in look().alive, 60, "it has left")
    finally:
        kafka.servers[victim].signal(signal.SIGCONT)
    wait_until(lambda: look() == well, 60, "it is back")


@pytest.mark.parametrize("which", ["leads", "controls"])
def test_deaths_are_noticed_without_a_timeout(tmp_path: Path, which: str) -> None:
    """Brokers hold lifelines to each other."""
    kafka = Kafka(tmp_path, 3, settings=NO_TIMEOUT)
    try:
        kafka.start()
        kafka.make_topics("written")
        wait_until(kafka.whole, 60, "all replicas in sync")
        writer = FencedWriter(kafka.bootstrap, "writer")
        writer.fence()
        leader, controller = kafka.leader_of("written"), kafka.controller()
        assert controller is not None
        victim = {"leads": leader, "controls": controller}[which]
        victim.kill()
        wait_until(lambda: kafka.controller() not in (None, victim), 60, "another controller")
        wait_until(lambda: kafka.leader_of("written") is not victim, 60, "another leader")
        writer.commit([Record("written", b"without it")])
        offsets = Offsets(kafka.bootstrap)
        wait_until(lambda: offsets.end("written") > 1, 60, "what is written is committed")
    finally:
        kafka.stop()


def test_a_controller_that_is_not_active_yet_is_asked_once_more(tmp_path: Path) -> None:
    """It refuses for some milliseconds behind its election; without, a second was lost then."""
    source = Path(__file__).parent / "java/dev/espha/broker/SlowlyActive.java"
    jars = f"{JAR_CACHE / 'kafka'}/*"
    options = ("--release", "17", "-cp", jars, "-d", tmp_path)  # as our own classes
    subprocess.run(["javac", *options, source], check=True, timeout=300)
    command = [java_program(), "-cp", f"{tmp_path}:{jars}", "dev.espha.broker.SlowlyActive"]
    ran = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["until it is fenced: 3", "behind its next end: 1"]


def test_who_leads_for_the_first_time_has_the_classes_for_it_at_hand(tmp_path: Path) -> None:
    """A broker that is young reads and checks them at the moment when everybody waits for it."""
    java = (*BRIEF, "-Xlog:class+load:file=classes-%p.log")
    kafka = Kafka(tmp_path, 3, java=java)
    try:
        kafka.start()
        kafka.make_topics("written")
        wait_until(kafka.whole, 60, "all replicas in sync")
        leader = kafka.leader_of("written")
        _commit(kafka)
        leader.kill()
        wait_until(lambda: kafka.leader_of("written") is not leader, 60, "another leader")
        _commit(kafka)  # under the same id, whose transaction the new coordinator has to load
        heir = kafka.leader_of("written")
        assert heir.process is not None
        loaded = (heir.folder / f"classes-{heir.process.pid}.log").read_text().splitlines()
    finally:
        kafka.stop()
    read = [line for line in loaded if ".jar" in line]
    assert len(loaded) > 5000
    assert len(read) < 150, read[-50:]  # logging, and what Java cannot archive


def _commit(kafka: Kafka) -> None:
    writer = FencedWriter(kafka.bootstrap, "writer")
    writer.fence()
    writer.commit([Record("written", b"it")])


def test_a_machine_that_is_gone_ends_its_lifelines(tmp_path: Path) -> None:
    """It closes nothing: the kernel asks it now and then whether it is there."""
    ports = free_ports(6)
    kafka = Kafka(tmp_path, 3, ports=ports)
    try:
        kafka.start()
        what = "each broker looks after two lifelines"
        wait_until(lambda: len(_kept_alive(ports)) >= 6, 120, what)
    finally:
        kafka.stop()


def _kept_alive(ports: list[int]) -> list[str]:
    """Return connections to ports which the kernel asks for within some seconds, not in hours."""
    kept = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, _, there, _, _, timer, *_ = line.split()
            kind, _, jiffies = timer.partition(":")
            to = int(there.rpartition(":")[2], 16)
            if to in ports and int(kind, 16) == 2 and int(jiffies, 16) <= 600:
                kept.append(line)
    return kept


def test_a_lifeline_that_is_closed_is_no_death(tmp_path: Path) -> None:
    """Brokers close what is idle: the next lifeline shows that the other one lives."""
    kafka = Kafka(tmp_path, 3, settings={"connections.max.idle.ms": "1000"})
    try:
        kafka.start()

        def said() -> list[str]:
            return [server.log.read_text() for server in kafka.servers]

        wait_until(
            lambda: all(text.count("is renewed") > 3 for text in said()),
            120,
            "lifelines are renewed",
        )
        assert not [text for text in said() if "has ended" in text]
    finally:
        kafka.stop()
