"""What a deployment's folder holds: what was asked for, and what runs.

deployment.json  what was asked for: options, ports, the mark of its processes; written once
processes.json   what the daemon has started, and how far it is; written at each change
model.xml        the model as it is deployed
faults.txt       what was killed on purpose, and when
daemon.lock      held as long as a daemon lives
"""

import errno
import fcntl
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from espha.adapters.file_input.spec import InputFile
from espha.adapters.file_output.spec import OutputFile
from espha.durable import replace_file
from espha.local.errors import LocalError
from espha.local.processes import Identity

PREFIX = "local"
"""Topics begin with it: each deployment has a Kafka of its own."""
DATA = "data"
"""In the folder: files that adapters read and write, where somebody puts them there."""
Phase = Literal["starting servers", "starting engines", "running", "ending", "failed"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Input(_Part):
    """A file that feeds a source window (`query/window`)."""

    name: str
    window: str
    file: InputFile


class Output(_Part):
    """A file that takes what a window (`query/window`) publishes."""

    name: str
    window: str
    file: OutputFile


class Spec(_Part):
    """What a deployment is made of.

    Attributes:
        id: the mark of its processes.
        name: what people call it.
        engines: how many.
        brokers: how many Kafka brokers, and ZooKeeper servers.
        jars: the directory with the engines' jars.
        inputs: files to read.
        outputs: files to write.
        ports: of each process by name; servers have several.
        sums: what `espha verify --sum-window` is told.
    """

    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    name: str
    engines: int = Field(ge=1, le=9)
    brokers: Literal[1, 3]
    jars: Path
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    ports: dict[str, tuple[int, ...]]
    sums: tuple[str, ...] = ()

    def engine_names(self) -> list[str]:
        """Return the names of the engines."""
        return [f"engine-{number}" for number in range(self.engines)]

    def server_names(self) -> list[str]:
        """Return the names of the servers."""
        kinds = ("zookeeper", "kafka")
        return [f"{kind}-{number}" for kind in kinds for number in range(self.brokers)]

    def adapter_names(self) -> list[str]:
        """Return the names of the adapters."""
        pairs = [f"{one.name}-{number}" for one in self.inputs for number in range(2)]
        return [*pairs, *(one.name for one in self.outputs)]

    def names(self) -> list[str]:
        """Return the names of all processes."""
        return [*self.server_names(), *self.engine_names(), *self.adapter_names()]

    def port(self, name: str) -> int:
        """Return where a process is asked."""
        return self.ports[name][0]

    def ports_of(self, kind: str) -> list[int]:
        """Return the ports of all servers of a kind, the clients' first."""
        rows = [self.ports[f"{kind}-{number}"] for number in range(self.brokers)]
        return [port for column in zip(*rows, strict=True) for port in column]

    @property
    def bootstrap(self) -> str:
        """Where Kafka is."""
        ports = (self.port(f"kafka-{number}") for number in range(self.brokers))
        return ",".join(f"127.0.0.1:{port}" for port in ports)


class Started(_Part):
    """One process that the daemon has started.

    Attributes:
        identity: the process.
        starts: how often it was started.
    """

    identity: Identity
    starts: int


class Running(_Part):
    """What the daemon has done so far.

    Attributes:
        phase: how far it is.
        message: why it failed.
        daemon: the daemon itself.
        processes: what it has started, by name.
    """

    phase: Phase
    message: str = ""
    daemon: Identity | None = None
    processes: dict[str, Started] = Field(default_factory=dict)


class Folder:
    """The folder of one deployment."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.model = self.path / "model.xml"
        self.faults = self.path / "faults.txt"
        self.logs = self.path / "logs"
        self._spec = self.path / "deployment.json"
        self._running = self.path / "processes.json"

    @property
    def exists(self) -> bool:
        """Whether there is a deployment in it."""
        return self._spec.exists()

    def spec(self) -> Spec:
        """Return what the deployment is made of.

        Raises:
            LocalError: there is none, or its file is damaged.
        """
        try:
            return Spec.model_validate_json(self._spec.read_bytes())
        except FileNotFoundError:
            raise LocalError(
                f"there is no deployment in {self.path}; make one with `espha local up MODEL.xml "
                "--input WINDOW=FILE --output WINDOW=FILE`, or name its folder with --folder"
            ) from None
        except (OSError, ValidationError) as error:
            raise LocalError(f"{self._spec} cannot be read: {_short(error)}") from None

    def write_spec(self, spec: Spec) -> None:
        """Keep what the deployment is made of."""
        _write(self._spec, spec)

    def running(self) -> Running:
        """Return what the daemon has done so far; nothing, where it never ran."""
        try:
            return Running.model_validate_json(self._running.read_bytes())
        except (OSError, ValidationError):
            return Running(phase="ending")

    def write_running(self, running: Running) -> None:
        """Keep what the daemon has done so far."""
        _write(self._running, running)

    def note_fault(self, name: str, moment: float | None = None) -> None:
        """Remember that something was done on purpose, for the checker."""
        with self.faults.open("a") as file:
            file.write(f"{time.time() if moment is None else moment:.3f} {name}\n")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the daemon of this folder, alone.

        Raises:
            LocalError: somebody else is.
        """
        with (self.path / "daemon.lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LocalError(self.in_use()) from None
            yield

    def is_held(self) -> bool:
        """Tell whether a daemon lives."""
        try:
            with (self.path / "daemon.lock").open("r") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def in_use(self) -> str:
        """Say that there is a deployment already."""
        return (
            f"a deployment runs in {self.path} already: `espha local status` shows it, "
            "`espha local down` ends it, --folder names another folder"
        )


def _write(path: Path, content: _Part) -> None:
    replace_file(path, [content.model_dump_json(indent=1).encode()], sync_name=False)


def sentence(error: OSError) -> str:
    """Say what the operating system refused."""
    if error.errno == errno.ENOSPC:
        return (
            f"the disk is full ({error.filename or 'while writing'}): free some space, then again"
        )
    return f"{error.filename or 'the operating system'}: {error.strerror}"


def _short(error: Exception) -> str:
    return str(error).splitlines()[0]
