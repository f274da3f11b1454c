"""`espha local up`: check the spec, choose ports, start the daemon, wait until all is ready."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from espha.adapters.file_input.spec import InputFile
from espha.adapters.file_output.spec import OutputFile
from espha.connectors.topics import topic_plan
from espha.local import jars
from espha.local.errors import LocalError
from espha.local.java import check_java
from espha.local.look import Look, look_at
from espha.local.ports import free_ports, is_free
from espha.local.processes import sweep
from espha.local.state import DATA, PREFIX, Folder, Input, Output, Spec, sentence
from espha.local.waiting import StallDetector
from espha.model import ModelError, Project
from espha.offline.options import InputOption, UsageError, find_window, read_input, read_settings
from espha.offline.places import Places
from espha.offline.spark_model import spark_model
from espha.protocol.states import EngineState
from espha.reader import read_project

Say = Callable[[str], None]
_LEAST_FREE = 300 << 20
_STILL_S = 120.0
_LOOK_S = 0.3
_PACKAGES = ("confluent_kafka", "kazoo", "pandas", "prometheus_client", "pyarrow", "pyspark")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LONGEST_NAME = 20
_SERVER_PORTS = {"zookeeper": 3, "kafka": 2}


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What a user asks of `espha local up`.

    Attributes:
        folder: where the deployment lives.
        model: the XML; None: go on with the deployment that is there.
        settings: `NAME=VALUE` for tokens.
        inputs: `WINDOW=FILE,…`.
        outputs: `WINDOW=FILE`.
        engines: how many.
        brokers: how many Kafka brokers, and as many ZooKeeper servers.
        sums: what the checker recomputes, `FIELD:LENGTH:OUTPUT`.
    """

    folder: Path
    model: Path | None = None
    settings: Sequence[str] = ()
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    engines: int = 3
    brokers: Literal[1, 3] = 1
    sums: Sequence[str] = ()


def prepare(options: UpOptions, say: Say) -> Folder:
    """Make the folder of a deployment, or get the one that is there ready to go on.

    Raises:
        LocalError: what is asked for is not possible; the text says what to change.
    """
    folder = Folder(options.folder)
    check_packages()
    check_java()
    if folder.is_held():
        raise LocalError(folder.in_use())
    if folder.exists and options.model is not None:
        raise LocalError(
            f"there is a deployment in {folder.path} already: `espha local up` without a model "
            "goes on with it, `espha local down --delete` deletes it, --folder names another folder"
        )
    try:
        if not folder.exists:
            _make(folder, options, say)
        else:
            _make_ready(folder, say)
    except OSError as error:
        raise LocalError(sentence(error)) from None
    return folder


def check_packages() -> None:
    """Look whether this Python has what engines need.

    Raises:
        LocalError: packages are missing; the text says how to install them.
    """
    missing = [name.replace("_", "-") for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise LocalError(
            f"packages are missing ({', '.join(missing)}): pip install 'espha[engine]'"
        )


def start(folder: Folder) -> None:
    """Start the daemon, which outlives this process."""
    command = [sys.executable, "-m", "espha.local.daemon", str(folder.path)]
    with (folder.path / "daemon.log").open("wb") as log:
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def wait_ready(folder: Folder, progress: Callable[[Look], None]) -> Look:
    """Wait until every engine is in sync, one is active, and all adapters run.

    Raises:
        LocalError: it failed, or nothing has moved for long.
    """
    spec, seen = folder.spec(), Look()
    stalled = StallDetector(_STILL_S, lambda: (seen.states(), _written(folder)))
    before = folder.running().daemon
    while True:
        running = folder.running()
        seen = look_at(folder, spec)
        progress(seen)
        if seen.ready:
            return seen
        if running.phase == "failed":
            raise LocalError(running.message)
        for name, status in seen.statuses.items():
            if status and status.state == EngineState.REFUSED:
                raise LocalError(f"{name}: {status.message}")
        if not folder.is_held() and (running.daemon != before or stalled.over()):
            raise LocalError(_last_words(folder))
        if stalled.over():
            raise LocalError(
                f"nothing has moved for {_STILL_S:.0f} s: {seen.sentence()}; the logs are in "
                f"{folder.logs}, `espha local down` ends everything"
            )
        time.sleep(_LOOK_S)


def _last_words(folder: Folder) -> str:
    said = (folder.path / "daemon.log").read_text().strip().splitlines()[-1:]
    return f"the daemon has ended: {' '.join(said) or 'it said nothing'}"


def _written(folder: Folder) -> int:
    return sum(path.stat().st_size for path in folder.logs.glob("*.log"))


def _make(folder: Folder, options: UpOptions, say: Say) -> None:
    if options.model is None:
        folder.spec()  # says that there is none
        return
    if folder.path.is_dir() and any(entry.name != DATA for entry in folder.path.iterdir()):
        raise LocalError(f"{folder.path} is not empty, and holds no deployment; name another one")
    text, inputs, outputs = _read(options.model, options, say)
    where = next(each for each in (folder.path, *folder.path.parents) if each.exists())
    _check_space(where)
    for profile in ("kafka", "zookeeper"):
        jars.resolved(profile, say)
    libraries = jars.engine_home(say)
    folder.logs.mkdir(parents=True)
    folder.model.write_text(text, encoding="utf-8")
    spec = Spec(
        name=folder.path.name.lstrip(".") or "espha",
        engines=options.engines,
        brokers=options.brokers,
        jars=libraries,
        inputs=inputs,
        outputs=outputs,
        ports={},
        sums=tuple(options.sums),
    )
    folder.write_spec(spec.model_copy(update={"ports": _ports(spec)}))


def _make_ready(folder: Folder, say: Say) -> None:
    """End what an earlier daemon has left, and give ports anew that others have taken."""
    spec = folder.spec()
    sweep(spec.id, 5.0)
    _check_space(folder.path)
    for profile in ("kafka", "zookeeper"):
        jars.resolved(profile, say)
    ports = dict(spec.ports)
    taken = {port for group in ports.values() for port in group}
    for name, group in ports.items():
        busy = [port for port in group if not is_free(port)]
        if busy:
            fresh = dict(zip(busy, free_ports(len(busy), but=taken), strict=True))
            ports[name] = tuple(fresh.get(port, port) for port in group)
            for old, new in fresh.items():
                say(f"port {old} of {name} is in use by another program; it gets {new}")
    changes = {"ports": ports, "jars": jars.engine_home(say)}
    folder.write_spec(spec.model_copy(update=changes))


def _ports(spec: Spec) -> dict[str, tuple[int, ...]]:
    names = spec.names()
    counts = [_SERVER_PORTS.get(name.partition("-")[0], 1) for name in names]
    found = iter(free_ports(sum(counts)))
    return {
        name: tuple(next(found) for _ in range(count))
        for name, count in zip(names, counts, strict=True)
    }


def _check_space(path: Path) -> None:
    free = shutil.disk_usage(path).free
    if free < _LEAST_FREE:
        raise LocalError(
            f"{path}: only {free >> 20} MB are free on its disk, and Kafka, ZooKeeper and "
            f"snapshots need {_LEAST_FREE >> 20} MB to begin with; free some, or name another "
            "--folder"
        )


def _read(
    model: Path, options: UpOptions, say: Say
) -> tuple[str, tuple[Input, ...], tuple[Output, ...]]:
    """Return the model as it is deployed, and what feeds it and takes from it."""
    try:
        tokens = {**Places(model).tokens(), **read_settings(options.settings)}
        xml = model.read_bytes()
        project = read_project(xml, str(model), tokens=tokens)
        for warning in project.warnings:
            say(f"{model}: warning: {warning}")
        inputs = [_input(read_input(text, project), say) for text in options.inputs]
        outputs = [_output(text, project) for text in options.outputs]
        _check_names([*inputs, *outputs])
        written = {output.window for output in outputs}
        windows = project.windows.items()
        published = [path for path, one in windows if path in written or one.kafka("sub")]
        if not published:
            raise LocalError("nothing would leave the model: name a window, --output WINDOW=FILE")
        text = spark_model(xml, tokens, {}, published)
        topic_plan(read_project(text, str(model)), PREFIX)
    except OSError as error:
        raise LocalError(f"{model}: {error.strerror}") from None
    except (ModelError, UsageError) as error:
        raise LocalError(str(error)) from None
    return text, tuple(inputs), tuple(outputs)


def _input(option: InputOption, say: Say) -> Input:
    layout, file = option.layout, option.file.absolute()
    if layout.format != "csv" or option.block != 1:
        raise LocalError(
            f"--input {option.file}: an input adapter reads CSV, row by row; json and block are "
            "for `espha run`"
        )
    if not file.parent.is_dir():
        raise LocalError(f"--input {option.file}: there is no folder {file.parent}")
    whole = not _ends_with_newline(file)
    if whole:
        say(f"{option.file} does not end with a newline: it is read to its end, as it is")
    return Input(
        name=f"input-{_plain(option.window)}",
        window=option.window,
        file=InputFile(path=file, growing=not whole, **layout.model_dump(exclude={"format"})),
    )


def _ends_with_newline(file: Path) -> bool:
    """Tell whether a file ends with a whole line; one that is not there yet will."""
    if not file.exists() or file.stat().st_size == 0:
        return True
    with file.open("rb") as content:
        content.seek(-1, os.SEEK_END)
        return content.read(1) == b"\n"


def _output(text: str, project: Project) -> Output:
    window, equals, rest = text.partition("=")
    file, *words = rest.split(",")
    if not equals or not file or words not in ([], ["header"], ["header=full"]):
        raise LocalError(
            f"--output {text!r}: write WINDOW=FILE, WINDOW=FILE,header or WINDOW=FILE,header=full"
        )
    path = find_window(window.strip(), project)
    header: Literal["none", "true", "full"] = (
        "none" if not words else "true" if words == ["header"] else "full"
    )
    target = Path(file).absolute()
    if not target.parent.is_dir():
        raise LocalError(f"--output {text!r}: there is no folder {target.parent}")
    return Output(
        name=f"output-{_plain(path)}", window=path, file=OutputFile(path=target, header=header)
    )


def _plain(window: str) -> str:
    """Return a window's name as an adapter may be called."""
    name = window.rpartition("/")[2].lower()
    plain = "".join(letter if letter in _LETTERS else "-" for letter in name)
    return plain[:_LONGEST_NAME].strip("-") or "window"


def _check_names(adapters: Sequence[Input | Output]) -> None:
    names = [one.name for one in adapters]
    for one in adapters:
        if names.count(one.name) > 1:
            raise LocalError(
                f"window {one.window} can have one file only for each direction, and its name "
                f"must differ from others in the first {_LONGEST_NAME} letters"
            )
