"""The daemon: starts a deployment's processes, and starts again what dies, as a kubelet does.

1. ZooKeeper and Kafka are started; Kafka's volumes are formatted when they are new.
2. When they serve, missing topics are made.
3. Engines and adapters are started, each under its supervisor.
4. Whatever ends is started again, after a pause that grows.
5. On SIGTERM everything ends: supervisors first, so that nobody waits for servers that are gone.

`python -m espha.local.daemon FOLDER`; `espha local up` starts it.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import KafkaException

from espha.adapters.types import InputConfig, OutputConfig
from espha.connectors.topics import topic_plan
from espha.local.errors import LocalError
from espha.local.ports import HOST
from espha.local.processes import MARK, identify, sweep
from espha.local.replicas import Replica
from espha.local.servers import LASTING, LASTING_BROKERS, Kafka, Server, ZooKeeper
from espha.local.state import (
    PREFIX,
    Folder,
    Input,
    Output,
    Phase,
    Running,
    Spec,
    Started,
    sentence,
)
from espha.local.waiting import StallDetector
from espha.protocol.settings import Settings
from espha.reader import read_project

_LOOK_S = 0.1
_STILL_S = 90.0
"""Servers that have not moved for so long do not come any more."""
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
_HEALTHY_S = 60.0
_GRACE_S = 10.0
_SERVER_GRACE_S = 15.0
_LOG_BYTES = 20 << 20
Kept = Server | Replica


class _Life:
    """When a process was started, and when it may be started again."""

    def __init__(self) -> None:
        self.starts = 0
        self.since = 0.0
        self.pause = _FIRST_PAUSE_S
        self.again: float | None = None


class Daemon:
    """Keeps the processes of one folder running."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._spec = folder.spec()
        os.environ[MARK] = self._spec.id
        self._stop = threading.Event()
        self._phase: Phase = "starting servers"
        self._message = ""
        self._kept: dict[str, Kept] = {}
        self._lives: dict[str, _Life] = {}
        self._told = ""

    def run(self) -> int:
        """Keep everything running until SIGTERM or SIGINT; return an exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        code = 1
        try:
            self._start()
            while not self._stop.wait(_LOOK_S):
                self._look()
            self._phase, code = "ending", 0
        except _Stopped:
            self._phase, code = "ending", 0
        except LocalError as error:
            self._fail(str(error))
        except OSError as error:
            self._fail(sentence(error))
        except KafkaException as error:
            self._fail(f"Kafka: {error.args[0].str()}")
        finally:
            self._tell()
            self._end()
        return code

    def _start(self) -> None:
        self._tell()
        spec, path = self._spec, self._folder.path
        zookeeper = ZooKeeper(path, spec.brokers, java=LASTING, ports=spec.ports_of("zookeeper"))
        self._take(zookeeper.servers)
        kafka = Kafka(path, spec.brokers, java=LASTING_BROKERS, ports=spec.ports_of("kafka"))
        self._take(kafka.servers)
        self._wait(kafka.registered, "Kafka does not come up; its log says why")
        project = read_project(self._folder.model.read_bytes(), "model.xml")
        kafka.make_topics(*topic_plan(project, PREFIX).all())
        self._phase = "starting engines"
        self._take(replicas(self._folder, self._spec, zookeeper.connect, kafka.bootstrap))
        self._phase = "running"
        self._tell()

    def _take(self, kept: Sequence[Kept]) -> None:
        """Start processes and keep them running from now on."""
        for one in kept:
            one.log = self._folder.logs / f"{one.name}.log"
            self._kept[one.name], self._lives[one.name] = one, _Life()
            self._launch(one)
        self._tell()

    def _launch(self, one: Kept) -> None:
        life = self._lives[one.name]
        _cut(one.log)
        one.start()
        life.starts += 1
        life.since, life.again = time.monotonic(), None

    def _wait(self, condition: Callable[[], bool], otherwise: str) -> None:
        stalled = StallDetector(_STILL_S, self._written)
        while not condition():
            self._look()
            if stalled.over():
                raise LocalError(otherwise)
            if self._stop.wait(_LOOK_S):
                raise _Stopped

    def _written(self) -> int:
        """Return how much the servers have said: they are not dead then."""
        logs = (one.log for one in self._kept.values())
        return sum(log.stat().st_size for log in logs if log.exists())

    def _look(self) -> None:
        """Start again what has ended."""
        now = time.monotonic()
        for name, one in self._kept.items():
            life = self._lives[name]
            if one.process is None or one.process.poll() is None:
                continue
            if life.again is None:
                healthy = now - life.since > _HEALTHY_S
                life.pause = _FIRST_PAUSE_S if healthy else min(life.pause * 2, _LONGEST_PAUSE_S)
                life.again = now + life.pause
            elif now >= life.again:
                self._launch(one)
        self._tell()

    def _fail(self, message: str) -> None:
        self._phase, self._message = "failed", message
        print(message, file=sys.stderr, flush=True)

    def _tell(self) -> None:
        """Write down what runs, where that has changed; a full disk is no reason to end."""
        started = {}
        for name, one in self._kept.items():
            identity = identify(one.process.pid) if one.process else None
            if identity:
                started[name] = Started(identity=identity, starts=self._lives[name].starts)
        running = Running(
            phase=self._phase,
            message=self._message,
            daemon=identify(os.getpid()),
            processes=started,
        )
        text = running.model_dump_json()
        if text != self._told:
            try:
                self._folder.write_running(running)
                self._told = text
            except OSError as error:
                print(sentence(error), file=sys.stderr, flush=True)

    def _end(self) -> None:
        replicas = [one for one in self._kept.values() if isinstance(one, Replica)]
        servers = [one for one in self._kept.values() if isinstance(one, Server)]
        _terminate(replicas, _GRACE_S)
        _terminate([one for one in servers if one.name.startswith("kafka")], _SERVER_GRACE_S)
        sweep(self._spec.id, _GRACE_S)
        _terminate(servers, _GRACE_S)


class _Stopped(Exception):  # noqa: N818 - nothing is wrong
    """Somebody wants the end while things still start."""


def replicas(folder: Folder, spec: Spec, zookeeper: str, bootstrap: str) -> list[Replica]:
    """Return engines and adapters, ready to be started."""
    common = Settings(
        bootstrap=bootstrap,
        zookeeper=zookeeper,
        model=folder.model,
        prefix=PREFIX,
        deployment=f"local/{spec.name}",
        jars=spec.jars,
    )
    return [*_engines(folder, spec, common), *_adapters(folder, spec, common)]


def _engines(folder: Folder, spec: Spec, common: Settings) -> list[Replica]:
    names = spec.engine_names()
    made = []
    for name in names:
        own = common.model_copy(
            update={
                "root": "/espha/engines",
                "snapshots": str(folder.path / name),
                "peers": _addresses(spec, [peer for peer in names if peer != name]),
            }
        )
        arguments = ["--", "engine"]
        made.append(Replica(name, folder.path, arguments, own.environment(), spec.port(name)))
    return made


def _adapters(folder: Folder, spec: Spec, common: Settings) -> list[Replica]:
    made = []
    for source in spec.inputs:
        config = _config(folder, source, InputConfig)
        pair = [f"{source.name}-{number}" for number in range(2)]
        for name in pair:
            own = common.model_copy(
                update={
                    "root": f"/espha/adapters/{source.name}",
                    "peers": _addresses(spec, [peer for peer in pair if peer != name]),
                }
            )
            arguments = ["--", "adapter", "input", "--config", str(config)]
            made.append(Replica(name, folder.path, arguments, own.environment(), spec.port(name)))
    for target in spec.outputs:
        config = _config(folder, target, OutputConfig)
        arguments = ["--no-election", "--", "adapter", "output", "--config", str(config)]
        environment, port = common.environment(), spec.port(target.name)
        made.append(Replica(target.name, folder.path, arguments, environment, port))
    return made


def _config(
    folder: Folder, adapter: Input | Output, kind: type[InputConfig] | type[OutputConfig]
) -> Path:
    """Write an adapter's configuration; return where it is."""
    name = adapter.name.partition("-")[2]
    values = {"name": name, "window": adapter.window, "file": adapter.file.model_dump()}
    path = folder.path / f"{adapter.name}.json"
    path.write_text(kind.model_validate(values).text())
    return path


def _addresses(spec: Spec, names: list[str]) -> str:
    return ",".join(f"{HOST}:{spec.port(name)}" for name in names)


def _terminate(kept: Sequence[Kept], grace_s: float) -> None:
    """End processes: with SIGTERM, and with SIGKILL what is left after a while."""
    running = [one.process for one in kept if one.process and one.process.poll() is None]
    for process in running:
        process.send_signal(signal.SIGCONT)
        process.terminate()
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and any(each.poll() is None for each in running):
        time.sleep(_LOOK_S)
    for process in running:
        process.kill()
        process.wait()


def _cut(log: Path) -> None:
    """Put a log that has grown large aside, as the one before."""
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".old.log"))


def main() -> None:
    """Keep the deployment of a folder."""
    folder = Folder(Path(sys.argv[1]))
    try:
        with folder.held():
            code = Daemon(folder).run()
    except LocalError as error:
        print(error, file=sys.stderr)
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
