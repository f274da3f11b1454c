"""The machines of a campaign: three ZooKeeper servers, three brokers, and pods with engines."""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from chaos.disk import RealDisk
from chaos.proxy import Proxy, Route
from espha.ha.election import ZNODE_PREFIX
from espha.local.processes import family
from support.replicas import LIMIT_S, Replica
from support.servers import (
    BRIEF,
    LASTING,
    LASTING_BROKERS,
    Kafka,
    Server,
    ZooKeeper,
    free_ports,
    listens,
    wait_until,
)

ENGINES = ("engine-0", "engine-1", "engine-2")
SERVICES = ("kafka", "zookeeper")
_SERVERS = 3
SYNCED = {"log.flush.interval.messages": "1"}
"""Settings of brokers that survive the loss of power on all machines at once."""
Settings = Mapping[str, str] | None
LOOK_S = 0.2
"""Looking more often would take the processor from those who are looked at."""


class RoutedKafka(Kafka):
    """Three brokers with a listener for each engine, so that one engine can be cut off."""

    def __init__(
        self, folder: Path, proxied: bool, java: Sequence[str], settings: Settings, powered: bool
    ) -> None:
        numbers = range(_SERVERS) if powered else ()
        self.disks = [RealDisk(folder / f"kafka-{number}" / "data") for number in numbers]
        """Of each broker, where disks can fail."""
        ports = free_ports(2 * _SERVERS * len(ENGINES))
        rows = [ports[place : place + _SERVERS] for place in range(0, len(ports), _SERVERS)]
        self.inner = dict(zip(ENGINES, rows, strict=False))
        self.outer = dict(zip(ENGINES, rows[len(ENGINES) :], strict=True))
        if not proxied:
            self.outer = self.inner
        super().__init__(folder, _SERVERS, settings, java)

    def bootstrap_of(self, engine: str) -> str:
        """Return where an engine finds the brokers."""
        return ",".join(f"127.0.0.1:{port}" for port in self.outer[engine])

    def _properties(self, node: int, port: int, controller: int, voters: str, home: Path) -> str:
        names = {engine: engine.replace("-", "").upper() for engine in ENGINES}
        own = {
            "listeners": [f"{names[e]}://127.0.0.1:{self.inner[e][node]}" for e in ENGINES],
            "advertised.listeners": [
                f"{names[e]}://127.0.0.1:{self.outer[e][node]}" for e in ENGINES
            ],
        }
        lines = super()._properties(node, port, controller, voters, home).splitlines()
        added = [",".join([line, *own.get(line.partition("=")[0], [])]) for line in lines]
        security = [f"{name}:PLAINTEXT" for name in (*names.values(), "PLAINTEXT", "CONTROLLER")]
        added.append(f"listener.security.protocol.map={','.join(security)}")
        added.append("inter.broker.listener.name=PLAINTEXT")
        return "\n".join(added) + "\n"


class Pod(Replica):
    """A supervisor and its engine, with signals for each and for both."""

    def signal_engine(self, number: signal.Signals) -> None:
        """Send a signal to the engine with its JVM and workers; none left is no error."""
        with contextlib.suppress(LookupError):
            for pid in family(self.started()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def kill_pod(self) -> None:
        """Kill everything at once."""
        everything = family(self.process.pid) if self.process else []
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze(self) -> None:
        """Stop everything; nobody is told."""
        self.kill(signal.SIGSTOP)
        self.signal_engine(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let everything go on."""
        self.signal_engine(signal.SIGCONT)
        self.kill(signal.SIGCONT)

    def stop(self) -> None:
        """Kill everything, frozen or not, and wait for its end."""
        self.kill_pod()
        if self.process is not None:
            self.process.wait()


def wait_for_successor(pods: Sequence[Pod]) -> None:
    """Wait until the engine of one of these pods is active."""
    wait_until(lambda: any(pod.is_in("active") for pod in pods), LIMIT_S, "a successor", LOOK_S)


class Site:
    """Servers that all deployments of a campaign share."""

    def __init__(
        self,
        folder: Path,
        proxied: bool,
        lasting: bool,
        settings: Settings = None,
        *,
        powered: bool = False,
    ) -> None:
        self.folder = folder
        self.zookeeper = ZooKeeper(folder, replicas=_SERVERS, java=LASTING if lasting else BRIEF)
        java = LASTING_BROKERS if lasting else BRIEF
        self.kafka = RoutedKafka(folder, proxied, java, settings, powered)
        self.proxy: Proxy | None = None
        self._zookeepers = dict.fromkeys(ENGINES, self.zookeeper.connect)
        self._znodes = KazooClient(
            hosts=self.zookeeper.connect, connection_retry=KazooRetry(max_tries=-1, max_delay=0.5)
        )
        if proxied:
            self.proxy = Proxy(self._routes())

    def start(self) -> None:
        """Start all servers and wait until they serve."""
        self.zookeeper.start()
        self.kafka.start()
        self._znodes.start_async()

    def stop(self) -> None:
        """End everything."""
        self._znodes.stop()
        self._znodes.close()
        self.kafka.stop()
        self.zookeeper.stop()
        for disk in self.kafka.disks:
            disk.discard()
        if self.proxy is not None:
            self.proxy.stop()

    def addresses(self, engine: str) -> dict[str, str]:
        """Return the environment that tells an engine where its servers are."""
        return {
            "ESPHA_BOOTSTRAP": self.kafka.bootstrap_of(engine),
            "ESPHA_ZOOKEEPER": self._zookeepers[engine],
        }

    def whole(self) -> bool:
        """Tell whether all servers serve and every partition has all its replicas in sync."""
        return self.kafka.whole() and all(listens(server.port) for server in self.zookeeper.servers)

    def wait_whole(self, timeout: float) -> None:
        """Wait until nothing is left of a fault at the servers."""
        wait_until(self.whole, timeout, "all servers serve, all replicas in sync", LOOK_S)

    def queue(self, root: str) -> list[str]:
        """Return the names of those who stand in an election, the first one first.

        Nobody, while ZooKeeper does not answer.
        """
        if not self._znodes.connected:
            return []
        try:
            children = self._znodes.get_children(root)
            znodes = sorted(each for each in children if each.startswith(ZNODE_PREFIX))
            return [json.loads(self._znodes.get(f"{root}/{each}")[0])["name"] for each in znodes]
        except (KazooException, KazooTimeoutError):
            return []

    def zookeeper_leader(self) -> Server:
        """Return the server that leads the ensemble."""
        wait_until(lambda: bool(self._leaders()), 30, "one ZooKeeper server leads")
        return self._leaders()[0]

    def _leaders(self) -> list[Server]:
        return [server for server in self.zookeeper.servers if _mode(server.port) == "leader"]

    def _routes(self) -> list[Route]:
        outer = iter(free_ports(_SERVERS * len(ENGINES)))
        routes = []
        for engine in ENGINES:
            pairs = zip(self.kafka.outer[engine], self.kafka.inner[engine], strict=True)
            routes += [
                Route(cable, listen, target)
                for cable, (listen, target) in zip(cables(engine, "kafka"), pairs, strict=True)
            ]
            ports = [next(outer) for _ in self.zookeeper.servers]
            self._zookeepers[engine] = ",".join(f"127.0.0.1:{port}" for port in ports)
            routes += [
                Route(f"{engine}/zookeeper", port, server.port)
                for port, server in zip(ports, self.zookeeper.servers, strict=True)
            ]
        return routes


def cables(engine: str, service: str) -> list[str]:
    """Return the names of an engine's cables to `kafka` (one for each broker) or `zookeeper`."""
    if service == "kafka":
        return [f"{engine}/kafka-{broker}" for broker in range(_SERVERS)]
    return [f"{engine}/{service}"]


def _mode(port: int) -> str:
    """Ask a ZooKeeper server for its mode; "" when it does not answer."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as talk:
        talk.settimeout(1)
        talk.sendall(b"srvr")
        answer = b"".join(iter(lambda: talk.recv(4096), b"")).decode()
        for line in answer.splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
    return ""


@contextlib.contextmanager
def running(
    folder: Path,
    proxied: bool,
    lasting: bool,
    settings: Settings = None,
    *,
    powered: bool = False,
) -> Iterator[Site]:
    """Start a site; everything of it ends with the block.

    Args:
        folder: where servers keep what they need.
        proxied: whether engines reach servers through proxies.
        lasting: whether Java compiles as in production, or simply and soon.
        settings: of brokers, before the usual ones.
        powered: whether brokers have disks from which power can be cut.
    """
    site = Site(folder, proxied, lasting, settings, powered=powered)
    try:
        site.start()
        yield site
    finally:
        site.stop()
