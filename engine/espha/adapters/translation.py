"""What an adapter of SAS Event Stream Processing is asked to do, as the configuration of ours.

A command line (`dfesp_fs_adapter …`) and a connector of a model say the same, in properties. What
has no effect here becomes a note; what cannot be done becomes a problem, and nothing is guessed.
"""

import errno
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from pydantic import ValidationError

from espha.adapters.config import AdapterConfig, Direction
from espha.adapters.findings import CONNECTION, SNAPSHOT, Findings, check_names, first
from espha.adapters.translated_files import file_settings, is_socket
from espha.adapters.translated_streams import (
    Task,
    http_settings,
    kafka_settings,
    mqtt_settings,
    socket_settings,
    timer_settings,
)
from espha.adapters.translated_web import (
    database_place,
    script_settings,
    url_settings,
    websocket_settings,
)
from espha.adapters.types import InputConfig, OutputConfig, adapters
from espha.connectors.commands import (
    CAS_ADAPTER,
    DATABASE_ADAPTER,
    FILE_ADAPTER,
    STREAM_ADAPTERS,
    URL_ADAPTER,
    CommandLine,
)
from espha.connectors.kafka_cfg import KafkaCfg, read_kafka_cfg

_TABLE: Final = "table"
_STREAMS: Final = {
    "socket": socket_settings,
    "http": http_settings,
    "kafka": kafka_settings,
    "mqtt": mqtt_settings,
}
_TABLES: Final = frozenset({DATABASE_ADAPTER, CAS_ADAPTER, _TABLE})
_PROGRAMS: Final = frozenset({FILE_ADAPTER, *_TABLES, *_STREAMS})
"""Adapters of SAS Event Stream Processing, and our own by their names."""
_CLASSES: Final[Mapping[str, tuple[Direction, ...]]] = {
    "fs": ("pub", "sub"),
    "mqtt": ("pub", "sub"),
    "kafka": ("pub", "sub"),
    "timer": ("pub",),
    "url": ("pub",),
    "websocket": ("pub",),
    "python": ("pub",),
    "lua": ("pub",),
    "db": ("sub",),
}
"""Classes of connectors in a model that become adapters, and their types."""
_SCRIPTS: Final = ("python", "lua")
_DEFAULT_CFG: Final = "kafka.cfg"
_DIRECTIONS: Final[Mapping[str, Direction]] = {"pub": "pub", "sub": "sub"}
_URL: Final = re.compile(
    r"(?i:dfesp)://(?P<host>[^\s/:,?]+):(?P<port>\d{1,5})"
    r"/(?P<project>[^\s/,?]+)/(?P<query>[^\s/,?]+)/(?P<window>[^\s/,?]+)(\?(?P<options>\S*))?"
)
_TABLE_PROPERTIES: Final = frozenset({"connectstring", "desttablename", "rmretdel"})


@dataclass(frozen=True, slots=True)
class Translation:
    """What is made of a command line or a connector.

    Attributes:
        config: of our adapter; None: there is a problem.
        project: name of the model that it is for; empty: any.
        bootstrap: Kafka's servers, if that is said.
        zookeeper: ZooKeeper's servers, likewise.
        failover: whether it stands for election with others of its group.
        group: the name that these have in common.
        prefix: with this topic prefix, topics have the names that are meant; empty: unknown.
        notes: a sentence for each thing that is different, or has no effect.
        problems: a sentence for each thing that is not understood, or cannot be done.
    """

    config: InputConfig | OutputConfig | None = None
    project: str = ""
    bootstrap: str = ""
    zookeeper: str = ""
    failover: bool = False
    group: str = ""
    prefix: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class Given(NamedTuple):
    """What is said beside a command line.

    Attributes:
        name: of the adapter; empty: made of the failover group, or of the window and the file.
        kafka_cfg: read instead of the file that the command line names.
        database: written to instead of the one that the command line names.
    """

    name: str = ""
    kafka_cfg: Path | None = None
    database: str = ""


NOTHING: Final = Given()


def translate(
    line: CommandLine, read: Callable[[Path], str], given: Given = NOTHING
) -> Translation:
    """Translate a command line.

    Args:
        line: what it says.
        read: reads a text file; raises OSError.
        given: what is said beside it.
    """
    program = STREAM_ADAPTERS.get(line.program, line.program)
    if program not in _PROGRAMS:
        return Translation(problems=(_no_substitute(program),))
    found = Findings(problems=list(line.problems))
    values = dict(line.properties)
    if not line.program.startswith("dfesp_"):
        values.setdefault("transport", "kafka")
    cfg = _kafka(values, read, given.kafka_cfg, found)
    if cfg.date_format and not values.get("dateformat"):
        values["dateformat"] = cfg.date_format
    project, window, prefix = _url(values.get("url", ""), found)
    direction = _direction(values, found)
    config = None
    if direction is not None:
        task = Task(direction, values, read, found)
        kind, settings = _settings(program, task, given.database)
        group = cfg.group if cfg.failover and direction == "pub" else ""
        made = given.name or _name_of(program, group, window, values)
        config = _config(direction, {"name": made, "window": window, kind: settings}, found)
    return Translation(
        config=config,
        project=project,
        bootstrap=cfg.bootstrap,
        zookeeper=cfg.zookeeper,
        failover=cfg.failover,
        group=cfg.group,
        prefix=prefix,
        notes=tuple(found.notes),
        problems=tuple(found.problems),
    )


def translate_connector(
    class_: str, direction: Direction, window: str, properties: Mapping[str, str], label: str
) -> Translation:
    """Translate the properties of a connector in a model.

    Args:
        class_: of the connector; or the program whose command line it has.
        direction: of the connector.
        window: its window, "query/window".
        properties: by name.
        label: what tells the window's connectors apart.
    """
    found = Findings()
    if class_ in _PROGRAMS and class_ not in _CLASSES:
        kind, settings = _settings(class_, Task(direction, properties, _read_nothing, found), "")
    else:
        values = properties if class_ in _AS_WRITTEN else _lowered(properties)
        task = Task(direction, values, _read_nothing, found)
        kind, settings = _guarded(found, lambda: _of_class(class_, task, label))
    name = _name(window.rpartition("/")[2], window, label)
    config = _config(direction, {"name": name, "window": window, kind: settings}, found)
    return Translation(config=config, notes=tuple(found.notes), problems=tuple(found.problems))


def is_translated(class_: str, direction: Direction) -> bool:
    """Tell whether connectors of a class, or of a program's command line, become adapters."""
    return class_ in _PROGRAMS or direction in _CLASSES.get(class_, ())


def directions(class_: str) -> tuple[Direction, ...]:
    """Return the types of a class's connectors that become adapters."""
    return _CLASSES.get(class_, ())


_Made = tuple[str, dict[str, Any]]
"""The type of an adapter, and its settings."""


_AS_WRITTEN: Final = frozenset({"fs", "mqtt", "timer"})
"""Classes whose names of properties are in lower case; those of others are in any."""


def _lowered(properties: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in properties.items()}


def _of_class(class_: str, task: Task, label: str) -> _Made:
    if class_ == "timer":
        return "timer", timer_settings(task, label)
    if class_ == "url":
        return "poll", url_settings(task)
    if class_ == "websocket":
        return "websocket", websocket_settings(task)
    if class_ in _SCRIPTS:
        return "script", script_settings(task, class_)
    if class_ == "db":
        return _TABLE, _table(DATABASE_ADAPTER, task.values, "", task.found)
    if class_ in _STREAMS:
        return class_, _STREAMS[class_](task)
    return _file_or_socket(task)


def _file_or_socket(task: Task) -> _Made:
    if is_socket(task.text("fsname")):
        return "socket", socket_settings(task)
    return "file", file_settings(task.direction, task.values, task.found)


def _settings(program: str, task: Task, database: str) -> _Made:
    if program == FILE_ADAPTER:
        kind, told = _guarded(task.found, lambda: _file_or_socket(task))
        # Scripts remove the result before they start: what was written stays written.
        follow = {"missing": "new"} if (kind, task.direction) == ("file", "sub") else {}
        return kind, {**told, **follow}
    if program in _STREAMS:
        return _guarded(task.found, lambda: (program, _STREAMS[program](task)))
    if _TABLE not in [one.name for one in adapters(task.direction)]:
        task.found.refuse(_no_substitute(program))
        return "file", {}
    return _TABLE, _table(program, task.values, database, task.found)


def _guarded(found: Findings, make: Callable[[], _Made]) -> _Made:
    """Make it; a property with a value that it cannot have becomes a problem."""
    try:
        return make()
    except ValueError as error:
        found.refuse(first(error))
        return "file", {}


def _read_nothing(_: Path) -> str:
    raise OSError(errno.ENOENT, "files that a model names cannot be read here")


def _name_of(program: str, group: str, window: str, values: Mapping[str, str]) -> str:
    """Return the name of the adapter of a command line: of its group, or of what it reads."""
    file = values.get("fsname") or values.get("desttablename", "")
    if group or program not in _STREAMS:
        return _name(group or Path(file).stem, window, group or file)
    places = ("host", "port", "address", "kafkahostport", "kafkatopic", "mqtthost", "mqtttopic")
    return _name(program, window, file, *(values.get(one, "") for one in places))


def _table(
    program: str, values: Mapping[str, str], database: str, found: Findings
) -> dict[str, Any]:
    """Return the settings of a table; what stands in a connectstring is never repeated."""
    check_names(values, _TABLE_PROPERTIES | CONNECTION, found)
    if values.get("rmretdel", "").strip().lower() == "true":
        found.refuse("rmretdel cannot be followed: rows are written as they are on the topic")
    connect = values.get("connectstring", "")
    place = database_place(connect, database)
    if not place:
        found.refuse(
            "nothing says which database it is: give --database or a connectstring, "
            "postgresql://[USER@]HOST[:PORT]/DATABASE or a file of SQLite"
        )
    name = values.get("desttablename", "").strip()
    if not name:
        found.refuse("the name of the table is missing: property desttablename")
    if "pwd" in connect.lower() or re.search(r"//[^/@\s]*:[^/@\s]*@", connect):
        found.note("the password of connectstring is not taken over: give it in PGPASSWORD")
    # CAS tables take each event as a row; databases have the rows of the window.
    mode = {"mode": "append"} if program == CAS_ADAPTER else {}
    return {**place, "table": name, **mode}


def _no_substitute(program: str) -> str:
    if program == URL_ADAPTER:
        return (
            f"the command line of {program!r} is not read; an input adapter with poll fetches from "
            "a server, or let the server post to one with http"
        )
    sources, targets = (", ".join(one.name for one in adapters(way)) for way in ("pub", "sub"))
    return (
        f"there is no substitute for {program[:60]!r} (there are adapters of type pub for: "
        f"{sources}; of type sub for: {targets})"
    )


def _url(text: str, found: Findings) -> tuple[str, str, str]:
    """Return project, window and topic prefix that an address of a window names."""
    parts = _URL.fullmatch(text.strip())
    if parts is None:
        what = "is missing" if not text else "names several" if "," in text else "is none"
        found.refuse(f"url {what}: give one, dfESP://host:port/project/query/window")
        return "", "", ""
    for option, value in parse_qsl((parts["options"] or "").replace("?", "&").replace(";", "&")):
        _url_option(option.lower(), value.lower() == "true", found)
    window = f"{parts['query']}/{parts['window']}"
    return parts["project"], window, f"{parts['host']}_{parts['port']}"


def _url_option(option: str, on: bool, found: Findings) -> None:
    if option in {"collapse", "rmretdel"} and on:
        found.refuse(f"url: {option}=true cannot be followed: records are written as they are")
    elif option == "snapshot" and on:
        found.note(f"url: snapshot=true has no effect: {SNAPSHOT}")
    elif option not in {"collapse", "rmretdel", "snapshot"}:
        found.refuse(f"url: option {option[:60]!r} is not known")


def _direction(values: Mapping[str, str], found: Findings) -> Direction | None:
    text = values.get("type", "").strip().lower()
    known = _DIRECTIONS.get(text)
    if known is None:
        found.refuse("type is missing: pub or sub" if not text else "type must be pub or sub")
    return known


def _kafka(
    values: Mapping[str, str],
    read: Callable[[Path], str],
    instead: Path | None,
    found: Findings,
) -> KafkaCfg:
    transport = values.get("transport", "").strip().lower()
    if transport in {"", "native"}:
        found.note("transport is Kafka: adapters talk to topics, not to an engine")
    elif transport != "kafka":
        found.refuse(f"transport {transport[:60]!r} is not supported; use kafka")
    named = values.get("transportconfigfile", "").strip()
    path = instead or (Path(named) if named else None)
    if path is None and transport != "kafka":
        return KafkaCfg()
    try:
        cfg = read_kafka_cfg(read(path or Path(_DEFAULT_CFG)))
    except OSError as error:
        if path is not None:
            found.refuse(f"transportconfigfile {path}: {error.strerror}")
        return KafkaCfg()
    except ValueError as error:
        found.refuse(f"{path or _DEFAULT_CFG}: {first(error)}")
        return KafkaCfg()
    for note in cfg.notes:
        found.note(f"{path or _DEFAULT_CFG}: {note}")
    for problem in cfg.problems:
        found.refuse(f"{path or _DEFAULT_CFG}: {problem}")
    if cfg.failover and not cfg.group:
        found.refuse(f"{path or _DEFAULT_CFG}: sas: hotfailover needs a failovergroup")
    return cfg


def _config(
    direction: Direction, values: Mapping[str, Any], found: Findings
) -> InputConfig | OutputConfig | None:
    if found.problems:
        return None
    kind: type[AdapterConfig] = InputConfig if direction == "pub" else OutputConfig
    try:
        made = kind.model_validate(values)
    except ValidationError as error:
        for problem in error.errors():
            found.refuse(f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}")
        return None
    return made if isinstance(made, InputConfig | OutputConfig) else None


def _name(readable: str, *identity: str) -> str:
    """Return a name that is the same each time, and another one for another identity.

    It is of letters and digits only: names of adapters become parts of names of objects, where a
    hyphen could make two of them alike.
    """
    words = re.sub(r"[^a-z0-9]", "", readable.lower())[:14]
    return words + hashlib.blake2b("\0".join(identity).encode(), digest_size=3).hexdigest()
