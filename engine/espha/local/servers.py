"""ZooKeeper and Kafka servers as plain loopback processes, of the jars of the images."""

import contextlib
import json
import signal
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from espha.connectors.topics import own_settings
from espha.jvm import (
    CONCURRENT,
    LARGE_PAGES,
    LATE_COMPILER,
    SERIAL,
    class_archive,
    java_program,
)
from espha.local import cache
from espha.local.errors import LocalError
from espha.local.jars import own_jar
from espha.local.ports import HOST, free_ports, listens
from espha.local.waiting import wait_until
from espha.pipeline.jars import OWN_JARS
from espha.protocol import brokers

LASTING = (SERIAL, LARGE_PAGES, *LATE_COMPILER)
"""Java's options for servers that live long enough to be compiled well."""
LASTING_BROKERS = (*CONCURRENT, LARGE_PAGES, *LATE_COMPILER)
"""The same for brokers."""
BRIEF = (SERIAL, "-XX:TieredStopAtLevel=1")
"""For those that live for minutes: the better compiler would take the processor for all of them."""
BROKER = "dev.espha.broker.Broker"
"""Main class of a broker: Kafka's own, and lifelines between brokers."""
_LOGGING = Path(__file__).with_name("log4j2.properties")


def _archived(libraries: Path) -> tuple[str, ...]:
    """Return Java's options for the archive of classes beside the jars, if there is one."""
    archive = libraries.with_suffix(".jsa")
    return class_archive(archive) if archive.is_file() else ()


def _class_path(jars: str, libraries: Path) -> str:
    """Return the class path of a profile's jars, with our own jar where that is elsewhere."""
    if jars not in OWN_JARS or (own := own_jar(jars)).parent == libraries:
        return f"{libraries}/*"
    return f"{libraries}/*:{own}"


class Server:
    """One JVM server; it can be killed, frozen, thawed and started again with the same data."""

    def __init__(
        self, name: str, folder: Path, jars: str, main: list[str], java: Sequence[str]
    ) -> None:
        self.name, self.folder = name, folder
        self.log = folder / f"{name}.log"
        libraries = cache.jars(jars)
        path = _class_path(jars, libraries)
        self._command = [java_program(), *java, *_archived(libraries), "-cp", path, *main]
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> None:
        """Start the process; does not wait for it to serve."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
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
        self,
        folder: Path,
        replicas: int = 1,
        tick_ms: int = 200,
        java: Sequence[str] = BRIEF,
        ports: Sequence[int] = (),
    ) -> None:
        """Write the configuration; data that is there stays.

        Args:
            folder: gets a folder for each server.
            replicas: number of servers.
            tick_ms: ZooKeeper's unit of time.
            java: options of the JVMs.
            ports: three for each server, or none for free ones.
        """
        ports = ports or free_ports(replicas * 3)
        clients = ports[:replicas]
        peers = zip(ports[replicas : 2 * replicas], ports[2 * replicas :], strict=True)
        quorum = "".join(
            f"server.{number}={HOST}:{quorum}:{election}\n"
            for number, (quorum, election) in enumerate(peers, start=1)
        )
        self.servers = []
        for index, port in enumerate(clients):
            home = folder / f"zookeeper-{index}"
            (home / "data").mkdir(parents=True, exist_ok=True)
            (home / "data" / "myid").write_text(f"{index + 1}\n")
            (home / "zoo.cfg").write_text(
                f"tickTime={tick_ms}\ninitLimit=50\nsyncLimit=10\ndataDir={home}/data\n"
                f"clientPort={port}\nclientPortAddress={HOST}\nadmin.enableServer=false\n"
                f"maxClientCnxns=0\nautopurge.snapRetainCount=3\nautopurge.purgeInterval=1\n"
                f"preAllocSize=1024\n"
                f"minSessionTimeout={tick_ms * 2}\nmaxSessionTimeout=60000\n"
                + (quorum if replicas > 1 else "")
            )
            main = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(home / "zoo.cfg")]
            server = Server(f"zookeeper-{index}", home, "zookeeper", main, ["-Xmx96m", *java])
            server.port = port
            self.servers.append(server)
        self.connect = ",".join(f"{HOST}:{port}" for port in clients)

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
    """A KRaft cluster of one or three brokers in combined mode, set like the operator's."""

    def __init__(
        self,
        folder: Path,
        replicas: int = 1,
        settings: Mapping[str, str | int] | None = None,
        java: Sequence[str] = BRIEF,
        ports: Sequence[int] = (),
    ) -> None:
        """Format the volumes that are new.

        Args:
            folder: gets a folder for each broker.
            replicas: number of brokers.
            settings: of brokers, before the usual ones.
            java: options of the JVMs.
            ports: two for each broker, or none for free ones.
        """
        self._settings = settings or {}
        ports = ports or free_ports(replicas * 2)
        self.ports, controllers = list(ports[:replicas]), ports[replicas:]
        self.replicas = replicas
        self.bootstrap = ",".join(f"{HOST}:{port}" for port in self.ports)
        self._admin = AdminClient(
            {"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 100, "log_level": 2}
        )
        voters = ",".join(f"{index}@{HOST}:{port}" for index, port in enumerate(controllers))
        self.servers = []
        for index, port in enumerate(self.ports):
            home = folder / f"kafka-{index}"
            home.mkdir(parents=True, exist_ok=True)
            (home / "server.properties").write_text(
                self._properties(index, port, controllers[index], voters, home)
            )
            server = Server(
                f"kafka-{index}",
                home,
                "kafka",
                [BROKER, str(home / "server.properties")],
                ["-Xmx256m", *java, "-XX:+ExitOnOutOfMemoryError",
                 f"-Dlog4j2.configurationFile={_LOGGING}"],
            )  # fmt: skip
            server.port = port
            self.servers.append(server)
        _format([server.folder for server in self.servers])

    def start(self) -> None:
        """Start all brokers and wait until all are registered.

        The one that leads comes last: the others have a controller by then.
        """
        late = self.servers[brokers.LEADER]
        others = [server for server in self.servers if server is not late]
        for server in others:
            server.start()
        if others:
            wait_until(lambda: self.controller() is not None, 60, "a controller")
        late.start()
        for server in self.servers:
            server.wait()
        wait_until(self.registered, 60, "all brokers registered")

    def stop(self) -> None:
        """Kill all brokers."""
        for server in self.servers:
            server.kill()

    def leader_of(self, topic: str, partition: int = 0) -> Server:
        """Return the broker that leads a partition, once somebody does."""
        leaders: list[int] = []

        def is_led() -> bool:
            partitions = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
            if partition in partitions:
                leaders.append(partitions[partition].leader)
            return bool(leaders) and leaders[-1] >= 0

        wait_until(is_led, 60, f"a leader of partition {partition} of {topic}")
        return self.servers[leaders[-1]]

    def coordinator_of(self, transactional_id: str) -> Server:
        """Return the broker that coordinates the transactions of an id."""
        return self.leader_of(
            brokers.TRANSACTION_TOPIC, java_hash(transactional_id) % brokers.TRANSACTION_PARTITIONS
        )

    def controller(self) -> Server | None:
        """Return the active controller as far as the brokers' files tell; None: there is none."""
        seen = [_quorum(server.folder / "data") for server in self.servers]
        epoch, leader = max(seen)
        return self.servers[leader] if epoch >= 0 and leader >= 0 else None

    def whole(self) -> bool:
        """Tell whether all brokers serve, and all replicas are in sync, the first one leading."""
        if not all(listens(server.port) for server in self.servers):
            return False
        try:
            topics = self._admin.list_topics(timeout=2).topics.values()
        except KafkaException:
            return False
        partitions = [each for topic in topics for each in topic.partitions.values()]
        return bool(partitions) and all(
            len(each.isrs) == self.replicas and each.leader == each.replicas[0]
            for each in partitions
        )

    def make_topics(self, *names: str) -> None:
        """Make those of these one-partition topics that are missing, on all brokers.

        The topic of transactions comes first, so that Kafka does not make it elsewhere. What is
        there is the controller's to say: a broker may still list what was deleted.
        """
        held = brokers.replicas(self.replicas, self.copies)
        config = {"min.insync.replicas": str(self.in_sync), "retention.ms": "-1"}
        topics = [
            NewTopic(name, 1, replica_assignment=[held], config={**config, **own_settings(name)})
            for name in names
        ]
        for future in self._admin.create_topics([self._transaction_topic(held), *topics]).values():
            try:
                future.result(30)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def _transaction_topic(self, held: list[int]) -> NewTopic:
        return NewTopic(
            brokers.TRANSACTION_TOPIC,
            brokers.TRANSACTION_PARTITIONS,
            replica_assignment=[held] * brokers.TRANSACTION_PARTITIONS,
            config=brokers.transaction_topic(self.in_sync),
        )

    def registered(self) -> bool:
        """Tell whether all brokers take part."""
        return len(_brokers(self._admin)) == self.replicas

    @property
    def copies(self) -> int:
        """Copies of each partition."""
        return min(3, self.replicas)

    @property
    def in_sync(self) -> int:
        """Copies that must have a record before it counts as written."""
        return min(2, self.replicas)

    def _properties(self, node: int, port: int, controller: int, voters: str, home: Path) -> str:
        settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "data",
            **brokers.broker_settings(self.replicas, self.copies, self.in_sync),
            **brokers.own_settings(node, self.replicas),
            **self._settings,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())


def _quorum(data: Path) -> tuple[int, int]:
    """Return the epoch and the leader that a broker has seen last in the controllers' quorum.

    A leader of -1 is unknown.
    """
    try:
        state = json.loads((data / "__cluster_metadata-0" / "quorum-state").read_bytes())
    except (OSError, ValueError):
        return -1, -1
    return int(state["leaderEpoch"]), int(state["leaderId"])


def _format(homes: Sequence[Path]) -> None:
    """Format the volumes that are new, all of them for one cluster.

    Raises:
        LocalError: Kafka refuses; with what it says.
    """
    # A letter first: a command line takes an id that begins with '-' for an option.
    cluster_id = "c" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
    known = [found for home in homes if (found := _cluster_id(home))]
    command = [java_program(), *BRIEF, f"-Dlog4j2.configurationFile={_LOGGING}",
               "-cp", f"{cache.jars('kafka')}/*", "kafka.tools.StorageTool",
               "format", "-t", known[0] if known else cluster_id, "-c"]  # fmt: skip
    running = [
        subprocess.Popen(
            [*command, str(home / "server.properties")],
            cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for home in homes
        if not _cluster_id(home)
    ]  # fmt: skip
    for process in running:
        said, _ = process.communicate()
        if process.returncode:
            last = said.decode(errors="replace").strip().splitlines()[-1:]
            raise LocalError(f"Kafka cannot format its volume: {' '.join(last)}")


def _cluster_id(home: Path) -> str:
    """Return the id of the cluster that a broker's volume belongs to; nothing for a new one."""
    with contextlib.suppress(OSError):
        for line in (home / "data" / "meta.properties").read_text().splitlines():
            if line.startswith("cluster.id="):
                return line.partition("=")[2]
    return ""


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
