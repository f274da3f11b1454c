"""One look at a deployment: what its processes say of themselves."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from espha.local.ports import HOST, listens
from espha.local.state import Folder, Spec
from espha.protocol.http import NoAnswerError
from espha.protocol.http import ask_status as ask
from espha.protocol.states import EngineState
from espha.protocol.status import EngineProgress, ReplicaStatus


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one moment.

    Attributes:
        moment: monotonic seconds.
        phase: how far the daemon is; `down` where none lives.
        message: why it failed.
        statuses: of engines and adapters by name; None where nobody answers.
        servers: whether each server accepts connections, by name.
        starts: how often the daemon has started each process.
        spec: what the deployment is made of.
    """

    moment: float = 0.0
    phase: str = "down"
    message: str = ""
    statuses: dict[str, ReplicaStatus | None] = field(default_factory=dict)
    servers: dict[str, bool] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    spec: Spec | None = None

    @property
    def ready(self) -> bool:
        """Whether all run: engines in sync, one of them active, adapters too."""
        return (
            self.phase == "running"
            and all(self.servers.values())
            and all(in_sync(status) for status in self.statuses.values())
            and len(self.active()) == 1
        )

    def engines(self) -> dict[str, ReplicaStatus | None]:
        """Return what engines say."""
        names = self.spec.engine_names() if self.spec else []
        return {name: self.statuses.get(name) for name in names}

    def adapters(self) -> dict[str, ReplicaStatus | None]:
        """Return what adapters say."""
        names = self.spec.adapter_names() if self.spec else []
        return {name: self.statuses.get(name) for name in names}

    def active(self) -> list[str]:
        """Return the names of the engines that say they are active."""
        engines = self.engines().items()
        return [name for name, one in engines if one and one.state == EngineState.ACTIVE]

    def rows_written(self) -> int:
        """Return how many rows the output adapters have written since they started."""
        names = [target.name for target in self.spec.outputs] if self.spec else []
        return sum(rows_of(self.statuses.get(name)) or 0 for name in names)

    def epoch(self) -> int:
        """Return the newest epoch that an engine reports."""
        told = (one.engine for one in self.engines().values() if one)
        return max((progress.epoch for progress in told if progress), default=0)

    def states(self) -> str:
        """Return what changes when something moves."""
        states = [
            (name, one.state, one.restarts, one.progress) if one else name
            for name, one in self.statuses.items()
        ]
        return str((self.phase, sorted(self.servers.items()), states))

    def sentence(self) -> str:
        """Say how far everything is, on one line."""
        servers, engines, adapters = self.servers, self.engines(), self.adapters()
        counts = [
            f"{kind} {len([one for one in group if one])}/{len(group)}"
            for kind, group in (
                ("servers", list(servers.values())),
                ("engines in sync", [in_sync(one) for one in engines.values()]),
                ("adapters", [in_sync(one) for one in adapters.values()]),
            )
        ]
        return ", ".join(counts)


def in_sync(status: ReplicaStatus | None) -> bool:
    """Tell whether an engine or adapter is where it has to be."""
    return status is not None and status.in_sync


def rows_of(status: ReplicaStatus | None) -> int | None:
    """Return how many rows an adapter has handled since it started."""
    if status is None or status.progress is None or isinstance(status.progress, EngineProgress):
        return None
    return status.progress.rows


def ask_status(port: int) -> ReplicaStatus | None:
    """Return what a supervisor on this machine says; None when it does not answer."""
    try:
        return ask(f"{HOST}:{port}")
    except NoAnswerError:
        return None


def look_at(folder: Folder, spec: Spec) -> Look:
    """Ask everybody."""
    running = folder.running()
    alive = folder.is_held()
    names = [*spec.engine_names(), *spec.adapter_names()]
    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = list(pool.map(lambda name: ask_status(spec.port(name)), names))
        servers = spec.server_names()
        serving = list(pool.map(lambda name: listens(spec.port(name)), servers))
    return Look(
        moment=time.monotonic(),
        phase=running.phase if alive else "down",
        message=running.message,
        statuses=dict(zip(names, answers, strict=True)),
        servers=dict(zip(servers, serving, strict=True)),
        starts={name: started.starts for name, started in running.processes.items()},
        spec=spec,
    )
