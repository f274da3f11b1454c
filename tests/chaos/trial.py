"""One deployment under load, from its start to the verdict; faults strike it in between."""

import contextlib
import http.client
import json
import time
import uuid
from collections.abc import Collection
from http import HTTPStatus
from pathlib import Path
from random import Random

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from chaos import poisoned
from chaos.clock import Clock
from chaos.disk import RealDisk, SmallDisk
from chaos.here import ENVIRONMENT
from chaos.load import LINGER_MS, Load
from chaos.models import MODELS
from chaos.reader import Arrival, Reader
from chaos.site import ENGINES, LOOK_S, Pod, Site
from espha.connectors.topics import topic_plan
from espha.kafka.reader import CLIENT_TUNING, PARTITION, Offsets, last_record, records_backwards
from espha.kafka.writer import FencedWriter
from espha.model import Project
from espha.reader import read_project
from support.replicas import LIMIT_S, Replica, active_of
from support.servers import JAR_CACHE, wait_until

_FRESH_MS = 2_000


class Trial:
    """Three engines, a load and a reader on topics of their own."""

    def __init__(
        self,
        site: Site,
        folder: Path,
        name: str,
        rate: float,
        needs: Collection[str] = (),
        *,
        linger_ms: int = LINGER_MS,
    ) -> None:
        self.site, self.model, self.rate = site, MODELS[name], rate
        self._linger_ms = linger_ms
        self._needs = needs
        self.disks: dict[str, SmallDisk] = {}
        self.volumes: dict[str, RealDisk] = {}
        self.clocks = {
            engine: Clock(folder / f"{engine}.clock") for engine in ENGINES if "clock" in needs
        }
        model = self.model
        self.folder = folder
        self.id = f"c{uuid.uuid4().hex[:8]}"
        self.root = f"/ESP/chaos/{self.id}/engines"
        path = model.write(folder, self.id) if model.own_topics else model.path
        self.project: Project = read_project(path.read_text(encoding="utf-8"))
        self.plan = topic_plan(self.project, "" if model.own_topics else self.id)
        self.transactional_id = self.plan.order_log
        site.kafka.make_topics(*self.plan.all())
        self.pods = [
            Pod(engine, folder, ["--", "engine"], self._tell(engine, path)) for engine in ENGINES
        ]
        self.model_name = name
        self._load: Load | None = None
        self._reader: Reader | None = None
        self._watch: Consumer | None = None
        self._offsets = Offsets(site.kafka.bootstrap)
        self.sent = 0
        self.diverged: list[str] = []
        """Engines that found other outputs than the order log has, at any time."""

    def _tell(self, engine: str, model: Path) -> dict[str, str]:
        return {
            **self.site.addresses(engine),
            "PYTHONPATH": ENVIRONMENT["PYTHONPATH"],
            "ESPHA_ROOT": self.root,
            "ESPHA_MODEL": str(model),
            "ESPHA_PREFIX": "" if self.model.own_topics else self.id,
            "ESPHA_DEPLOYMENT": f"chaos/{self.id}",
            "ESPHA_JARS": str(JAR_CACHE / "engine"),
            "ESPHA_SNAPSHOTS": str(self.folder / engine),
            "ESPHA_SNAPSHOT_INTERVAL_S": str(self.model.snapshot_s),
            "ESPHA_ACK_LOG": str(self.ack_log(engine)),
            **(self.clocks[engine].environment() if engine in self.clocks else {}),
            **(poisoned.environment() if "poison" in self._needs else {}),
        }

    def ack_log(self, engine: str) -> Path:
        """Return the file in which an engine notes what Kafka acknowledged."""
        return self.folder / f"{engine}.acknowledged"

    def start(self) -> None:
        """Start engines, load and reader, and wait until output flows."""
        for pod in self.pods:
            peers = [f"127.0.0.1:{peer.port}" for peer in self.pods if peer is not pod]
            pod.environment["ESPHA_PEERS"] = ",".join(peers)
            folder = self.folder / pod.name
            folder.mkdir()
            if "disk" in self._needs:
                self.disks[pod.name] = SmallDisk(folder)
            if "volume" in self._needs:
                self.volumes[pod.name] = RealDisk(folder)
            pod.start()
        wait_until(
            lambda: all(pod.status().get("in_sync") for pod in self.pods),
            2 * LIMIT_S,
            "start",
            LOOK_S,
        )
        bootstrap = self.site.kafka.bootstrap
        outputs = list(self.plan.outputs.values())
        self._reader = Reader(bootstrap, self.folder / "arrivals.tsv", outputs)
        inputs = [self.plan.inputs[source] for source in self.model.sources]
        log = self.folder / "load.log"
        self._load = Load(
            self.model_name, bootstrap, self.rate, inputs, log, linger_ms=self._linger_ms
        )
        self.wait_in_sync(0.0)

    @property
    def load(self) -> Load:
        """The load."""
        assert self._load is not None, "the trial has not started"
        return self._load

    @property
    def reader(self) -> Reader:
        """The reader."""
        assert self._reader is not None, "the trial has not started"
        return self._reader

    def active(self) -> Pod:
        """Return the pod whose engine is active, waiting for one."""
        found: list[Replica] = []

        def one() -> bool:
            found[:] = active_of(list(self.pods))
            return len(found) == 1

        wait_until(one, LIMIT_S, "one active engine")
        return next(pod for pod in self.pods if pod.name == found[0].name)

    def standbys(self) -> list[Pod]:
        """Return the others, in the order in which they will be elected."""
        active = self.active()
        others = [pod for pod in self.pods if pod is not active]
        return sorted(others, key=lambda pod: pod.status().get("znode") or "~")

    def ask(self, pod: Pod, path: str, body: str | None = None) -> None:
        """Ask a supervisor for something over HTTP; it must say that it begins."""
        connection = http.client.HTTPConnection("127.0.0.1", pod.port, timeout=5)
        with contextlib.closing(connection):
            connection.request("POST", path, body)
            code = connection.getresponse().status
        assert code == HTTPStatus.ACCEPTED, f"{pod.name}, POST {path}: HTTP {code}"

    def epoch(self) -> int:
        """Return the newest epoch that an engine reports."""
        return max(int(pod.status().get("epoch") or 0) for pod in self.pods)

    def wait_in_sync(self, since: float) -> None:
        """Wait until all servers and engines are whole, in sync, and output is fresh again.

        Args:
            since: monotonic seconds; output must have come after this moment.
        """
        if self._watch is not None:
            self._watch.unassign()
        self.site.wait_whole(LIMIT_S)
        whole = f"all engines of {self.id} in sync, one active"
        wait_until(self._has_one_active, LIMIT_S, whole, LOOK_S)
        reached = max(int(pod.status().get("sequence") or 0) for pod in self.pods)
        wait_until(
            lambda: all(int(pod.status().get("sequence") or 0) >= reached for pod in self.pods),
            LIMIT_S,
            f"all engines at order record {reached}",
        )
        wait_until(lambda: self._is_fresh(since), LIMIT_S, "output flows, none of it is old")

    def where(self) -> str:
        """Say where everybody is, for whoever wonders why nothing goes on."""
        told = [f"all servers whole: {self.site.whole()}"]
        for pod in self.pods:
            status = pod.status()
            shown = [status.get(key) for key in ("state", "in_sync", "sequence", "message")]
            told.append(f"{pod.name} {shown}")
        told.append(f"the queue: {', '.join(self.site.queue(self.root))}")
        arrivals = self.reader.refresh() if self._reader else []
        told.append(f"{len(arrivals)} outputs, the last one {arrivals[-1:]}")
        return "; ".join(told)

    def _has_one_active(self) -> bool:
        statuses = {pod.name: pod.status() for pod in self.pods}
        active = [name for name, status in statuses.items() if status.get("role") == "active"]
        if len(active) != 1 or not all(status.get("in_sync") for status in statuses.values()):
            return False
        # A session that has just ended may not have told anybody yet: ZooKeeper has the last word.
        queue = self.site.queue(self.root)
        return queue[:1] == active and sorted(queue) == sorted(statuses)

    def _is_fresh(self, since: float) -> bool:
        arrivals = self.reader.refresh()
        if not arrivals or arrivals[-1].time <= since:
            return False
        return time.time_ns() // 1_000_000 - self.model.stamp(arrivals[-1].value) < _FRESH_MS

    def publish(self, number: int) -> None:
        """Write one more row into the load's stream."""
        producer = Producer({**CLIENT_TUNING, "bootstrap.servers": self.site.kafka.bootstrap})
        text = self.model.row(number, time.time_ns() // 1_000_000)
        topic = self.plan.inputs[self.model.sources[0]]
        producer.produce(topic, text.encode(), partition=PARTITION)
        producer.flush()

    def quarantined(self) -> int:
        """Return how many records have been set aside, as the active engine says."""
        return int(self.active().status().get("quarantined") or 0)

    def random_moment(self, chance: Random) -> None:
        """Let one to twenty outputs go by, and a little more than a batch's time at the most."""
        wanted = len(self.reader.refresh()) + chance.randint(1, 20)
        wait_until(lambda: len(self.reader.refresh()) >= wanted, LIMIT_S, "outputs go by")
        time.sleep(chance.uniform(0, 0.15))

    def in_transaction(self) -> None:
        """Wait for an output whose transaction is, most likely, not committed yet."""
        if self._watch is None:
            self._watch = Consumer(
                {
                    **CLIENT_TUNING,
                    "bootstrap.servers": self.site.kafka.bootstrap,
                    "group.id": "chaos",
                    "enable.auto.commit": False,
                    "isolation.level": "read_uncommitted",
                }
            )
        topics = self.plan.outputs.values()
        self._watch.assign([TopicPartition(topic, PARTITION, OFFSET_END) for topic in topics])
        deadline = time.monotonic() + LIMIT_S
        while (message := self._watch.poll(1.0)) is None or message.error():
            assert time.monotonic() < deadline, "no output at all"

    def finish(self) -> list[Arrival]:
        """End the load, wait for the last output, end everything; return what the reader saw."""
        assert self._load is not None, "the trial has not started"
        self.sent = self._load.stop()
        wait_until(self._is_drained, LIMIT_S, f"all of {self.sent} rows are processed")
        self.diverged = [pod.name for pod in self.pods if pod.status().get("diverged")]
        for pod in self.pods:
            pod.stop()
        # A time-based model publishes for ever: whoever died in the middle of it is cleared away.
        FencedWriter(self.site.kafka.bootstrap, self.transactional_id).fence()
        wait_until(self._has_all, LIMIT_S, "the reader has read everything")
        arrivals = self.reader.refresh()
        self.stop()
        return arrivals

    def _is_drained(self) -> bool:
        """Tell whether the order log names the last record of every input topic."""
        missing = set(self.plan.inputs.values())
        for message in records_backwards(self.site.kafka.bootstrap, self.plan.order_log):
            for topic, _, end in json.loads(message.value())["inputs"]:
                if topic in missing:
                    missing.remove(topic)
                    if end < self._offsets.end(topic):
                        return False
            if not missing:
                return True
        return False

    def _has_all(self) -> bool:
        seen = {arrival.topic: arrival.offset for arrival in self.reader.refresh()}
        lasts = {
            topic: last_record(self.site.kafka.bootstrap, topic)
            for topic in self.plan.outputs.values()
        }
        return all(
            last is None or seen.get(topic, -1) >= last.offset() for topic, last in lasts.items()
        )

    def stop(self) -> None:
        """End everything now."""
        for pod in self.pods:
            pod.stop()
        for disk in self.disks.values():
            disk.unmount()
        for volume in self.volumes.values():
            with contextlib.suppress(OSError):  # it does not hang
                volume.go_on()
            volume.discard()
        self.volumes.clear()
        if self._load is not None:
            self._load.kill()
        if self._reader is not None:
            self._reader.stop()
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def read_acknowledged(path: Path) -> list[tuple[int, str]]:
    """Return (sequence, digest) of each commit that an engine was told to have succeeded."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [(entry["sequence"], entry["digest"]) for entry in map(json.loads, lines)]
