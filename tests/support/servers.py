"""Real ZooKeeper and Kafka servers as plain loopback processes, of the jars of the images."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

JAR_CACHE = (
    Path(
        os.environ.get("ESPHA_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "espha"
    )
    / "jars"
)

_TRANSACTION_PARTITIONS = 4

LASTING = ("-XX:+UseSerialGC",)
"""Java's options for servers that live long enough to be compiled well."""
BRIEF = (*LASTING, "-XX:TieredStopAtLevel=1")
"""For those that live for minutes: the better compiler would take the processor for all of them."""


def free_ports(count: int) -> list[int]:
    """Return loopback ports that nobody uses now, none of those that the kernel hands out.

    A client that tries a dead server's port again and again would one day be given that very port
    as its own: it would talk to itself, and the server could not come back.
    """
    first_of_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = range(10_000, first_of_kernel)
    free: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            free.append(port)
        if len(free) == count:
            return free
    raise AssertionError(f"no {count} free ports from {candidates.start} to {candidates.stop}")


def wait_until(
    condition: Callable[[], bool], timeout: float, what: str, each_s: float = 0.02
) -> None:
    """Poll a condition until it holds; fail after `timeout` seconds, saying what for."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:.0f} s: {what}")
        time.sleep(each_s)


def listens(port: int) -> bool:
    """Tell whether a loopback port accepts connections."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """One JVM server; it can be killed, frozen, thawed and started again with the same data."""

    def __init__(
        self, name: str, folder: Path, jars: str, main: list[str], java: Sequence[str]
    ) -> None:
        self.name, self.folder = name, folder
        self._command = ["java", *java, "-cp", f"{JAR_CACHE / jars}/*", *main]
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> None:
        """Start the process; does not wait for it to serve."""
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self, timeout: float = 60) -> None:
        """Wait until the server accepts connections."""
        wait_until(lambda: listens(self.port), timeout, f"{self.name} listens on {self.port}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the process with SIGKILL and wait for its end."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()


class ZooKeeper:
    """An ensemble of one or three servers."""

    def __init__(
        self, folder: Path, replicas: int = 1, tick_ms: int = 200, java: Sequence[str] = BRIEF
    ) -> None:
        ports = free_ports(replicas * 3)
        clients = ports[:replicas]
        peers = zip(ports[replicas : 2 * replicas], ports[2 * replicas :], strict=True)
        quorum = "".join(
            f"server.{number}=127.0.0.1:{quorum}:{election}\n"
            for number, (quorum, election) in enumerate(peers, start=1)
        )
        self.servers = []
        for index, port in enumerate(clients):
            home = folder / f"zookeeper-{index}"
            (home / "data").mkdir(parents=True)
            (home / "data" / "myid").write_text(f"{index + 1}\n")
            (home / "zoo.cfg").write_text(
                f"tickTime={tick_ms}\ninitLimit=50\nsyncLimit=10\ndataDir={home}/data\n"
                f"clientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                f"maxClientCnxns=0\nminSessionTimeout={tick_ms * 2}\nmaxSessionTimeout=60000\n"
                + (quorum if replicas > 1 else "")
            )
            main = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(home / "zoo.cfg")]
            server = Server(f"zookeeper-{index}", home, "zookeeper", main, ["-Xmx96m", *java])
            server.port = port
            self.servers.append(server)
        self.connect = ",".join(f"127.0.0.1:{port}" for port in clients)

    def start(self) -> None:
        """Start all servers and wait until they serve."""
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait()

    def stop(self) -> None:
        """Kill all servers."""
        for server in self.servers:
            server.kill()


class Kafka:
    """A KRaft cluster of one or three brokers in combined mode.

    Set like the operator's, but a dead broker is missed sooner; docs/how-to/troubleshoot.md names
    the price.
    """

    def __init__(
        self,
        folder: Path,
        replicas: int = 1,
        settings: Mapping[str, str | int] | None = None,
        java: Sequence[str] = BRIEF,
    ) -> None:
        """Format the volumes; `settings` of brokers come before the usual ones."""
        self._settings = settings or {}
        ports = free_ports(replicas * 2)
        self.ports, controllers = ports[:replicas], ports[replicas:]
        self.replicas = replicas
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        self._admin = AdminClient(
            {"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 100, "log_level": 2}
        )
        voters = ",".join(f"{index}@127.0.0.1:{port}" for index, port in enumerate(controllers))
        # A letter first: a command line takes an id that begins with '-' for an option.
        cluster_id = "c" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        self.servers = []
        for index, port in enumerate(self.ports):
            home = folder / f"kafka-{index}"
            home.mkdir(parents=True)
            (home / "server.properties").write_text(
                self._properties(index, port, controllers[index], voters, home)
            )
            self._format(home, cluster_id)
            server = Server(
                f"kafka-{index}",
                home,
                "kafka",
                ["kafka.Kafka", str(home / "server.properties")],
                ["-Xmx256m", *java],
            )
            server.port = port
            self.servers.append(server)

    def start(self) -> None:
        """Start all brokers and wait until all are registered."""
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait()
        wait_until(
            lambda: len(_brokers(self._admin)) == self.replicas, 60, "all brokers registered"
        )

    def stop(self) -> None:
        """Kill all brokers."""
        for server in self.servers:
            server.kill()

    def leader_of(self, topic: str, partition: int = 0) -> Server:
        """Return the broker that leads a partition."""
        partitions = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
        leader: int = partitions[partition].leader
        return self.servers[leader]

    def coordinator_of(self, transactional_id: str) -> Server:
        """Return the broker that coordinates the transactions of an id."""
        return self.leader_of(
            "__transaction_state", java_hash(transactional_id) % _TRANSACTION_PARTITIONS
        )

    def whole(self) -> bool:
        """Tell whether all brokers serve and every partition has all its replicas in sync."""
        if not all(listens(server.port) for server in self.servers):
            return False
        try:
            topics = self._admin.list_topics(timeout=2).topics.values()
        except KafkaException:
            return False
        partitions = [each for topic in topics for each in topic.partitions.values()]
        return bool(partitions) and all(
            len(each.isrs) == self.replicas and each.leader >= 0 for each in partitions
        )

    def make_topics(self, *names: str) -> None:
        """Make one-partition topics, replicated to all brokers."""
        config = {"min.insync.replicas": str(min(2, self.replicas))}
        topics = [
            NewTopic(name, num_partitions=1, replication_factor=self.replicas, config=config)
            for name in names
        ]
        for future in self._admin.create_topics(topics).values():
            future.result(30)

    def _properties(self, node: int, port: int, controller: int, voters: str, home: Path) -> str:
        internal = min(3, self.replicas)
        settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": internal,
            "transaction.state.log.replication.factor": internal,
            "transaction.state.log.min.isr": min(2, internal),
            "transaction.state.log.num.partitions": _TRANSACTION_PARTITIONS,
            "offsets.topic.num.partitions": 1,
            "broker.session.timeout.ms": 800,
            "broker.heartbeat.interval.ms": 200,  # also how long a broker waits for the answer
            "controller.quorum.fetch.timeout.ms": 1200,
            "controller.quorum.election.timeout.ms": 300,
            "controller.quorum.election.backoff.max.ms": 100,
            "replica.fetch.backoff.ms": 50,
            "log.cleaner.dedupe.buffer.size": 16 << 20,
            **self._settings,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _format(self, home: Path, cluster_id: str) -> None:
        subprocess.run(
            ["java", *BRIEF, "-cp", f"{JAR_CACHE / 'kafka'}/*",
             "kafka.tools.StorageTool", "format", "-t", cluster_id,
             "-c", str(home / "server.properties")],
            check=True, cwd=home, capture_output=True,
        )  # fmt: skip


def java_hash(text: str) -> int:
    """Return the number from which Kafka finds the coordinator of an id: |Java's hash|."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return abs(value - (1 << 32) if value >> 31 else value) % (1 << 31)


def _brokers(admin: AdminClient) -> dict[int, object]:
    try:
        return dict(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return {}
