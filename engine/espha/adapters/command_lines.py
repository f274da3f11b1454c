"""Adapters by the command lines that people have: explained, and run."""

import errno
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from espha.adapters.config import AdapterConfig, ConfigError
from espha.adapters.translation import NOTHING, Given, Translation, translate
from espha.connectors.commands import CommandLine, read_command, read_words
from espha.protocol.settings import Settings, load_settings, variable

_ROOT = "/ESP/adapters"
"""Under it, the adapters of a failover group stand for election."""
_LARGEST = 1 << 20
"""Characters of a kafka.cfg."""

Say = Callable[[str], None]


class Prepared(NamedTuple):
    """An adapter that can be started.

    Attributes:
        config: its configuration.
        settings: of its process.
        project: the model that it is meant for.
        election: whether it stands for election with others.
        notes: a sentence for each thing that is different here, or has no effect.
    """

    config: AdapterConfig
    settings: Settings
    project: str
    election: bool
    notes: tuple[str, ...]


def explain(text: str, given: Given, out: Say, say: Say) -> int:
    """Print what a command line is as a configuration of ours; return the exit code.

    Args:
        text: the command line.
        given: what is said beside it.
        out: takes the configuration.
        say: takes a line on everything else.
    """
    try:
        line = read_command(text)
    except ValueError as error:
        say(str(error))
        return 2
    found = translate(line, _read, given)
    for problem in found.problems:
        say(f"error: {problem}")
    for note in found.notes:
        say(f"note: {note}")
    if found.config is None:
        return 2
    out(found.config.text().rstrip("\n"))
    for hint in _hints(found, found.config):
        say(hint)
    return 0


def prepare(
    program: str,
    words: Sequence[str],
    given: Given = NOTHING,
    model: Path | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
) -> Prepared:
    """Return the adapter that a command line means; the environment wins over its `kafka.cfg`.

    Args:
        program: name of the adapter, `dfesp_fs_adapter`.
        words: what stands behind it.
        given: what is said beside them.
        model: its XML; None: `ESPHA_MODEL`.
        environment: variables.

    Raises:
        ConfigError: a sentence for each thing that is not understood, or cannot be done.
        SettingsError: a variable is missing or wrong.
    """
    found = translate(_line(program, words), _read, given)
    if found.config is None:
        raise ConfigError("\n".join(found.problems))
    told = {variable(key): value for key, value in _settings(found, found.config).items() if value}
    named = {variable("model"): str(model)} if model else {}
    settings = load_settings({**told, **environment, **named})
    election = found.failover and found.config.type.direction == "pub"
    if election and not settings.zookeeper:
        raise ConfigError(
            "hotfailover needs ZooKeeper: give zookeeperhostport in kafka.cfg, or ESPHA_ZOOKEEPER"
        )
    return Prepared(found.config, settings, found.project, election, found.notes)


def _line(program: str, words: Sequence[str]) -> CommandLine:
    return read_words(program.rpartition("/")[2], words)


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise OSError(errno.EFBIG, "larger than any kafka.cfg")
    return text


def _settings(found: Translation, config: AdapterConfig) -> dict[str, str]:
    """Return the settings that a command line says, by name; empty: it does not say."""
    return {
        "name": f"{socket.gethostname()}-{os.getpid()}",
        "bootstrap": found.bootstrap,
        "zookeeper": found.zookeeper,
        "root": f"{_ROOT}/{found.group or config.name}" if found.failover else "",
        "http_port": "0",  # several of them may run on one machine
    }


def _hints(found: Translation, config: AdapterConfig) -> list[str]:
    pub = config.type.direction == "pub"
    election = "" if found.failover and pub else "--no-election "
    command = f"espha adapter {'input' if pub else 'output'} --config FILE"
    told = _settings(found, config)
    wanted = ("zookeeper", "root") if found.failover and pub else ()
    return [
        f"run it: espha supervise {election}-- {command}",
        f"with: {variable('bootstrap')}={found.bootstrap or 'HOST:PORT'}",
        *(f"with: {variable(name)}={told[name] or 'HOST:PORT'}" for name in wanted),
        f"with: {variable('prefix')}={found.prefix}, where topics have the names that the url "
        "means; elsewhere what the model or the deployment names them after",
    ]
