"""What an adapter of SAS Event Stream Processing is asked to do, as the configuration of ours.

A command line (`dfesp_fs_adapter …`) and a connector of a model say the same, in properties. What
has no effect here becomes a note; what cannot be done becomes a problem, and nothing is guessed.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from pydantic import ValidationError

from espha.adapters.config import AdapterConfig, Direction
from espha.adapters.types import InputConfig, OutputConfig, adapters
from espha.connectors.commands import CAS_ADAPTER, DATABASE_ADAPTER, FILE_ADAPTER, CommandLine
from espha.connectors.connectors import open_tokens
from espha.connectors.databases import postgres_url
from espha.connectors.files import (
    SOURCE_PROPERTIES,
    TARGET_PROPERTIES,
    file_source,
    file_target,
    whole_property,
)
from espha.connectors.kafka_cfg import KafkaCfg, read_kafka_cfg
from espha.records.layout import CsvLayout

_PROGRAMS: Final = frozenset({FILE_ADAPTER, DATABASE_ADAPTER, CAS_ADAPTER})
_DEFAULT_CFG: Final = "kafka.cfg"
_DIRECTIONS: Final[Mapping[str, Direction]] = {"pub": "pub", "sub": "sub"}
_SOCKET: Final = re.compile(r"[A-Za-z0-9._-]*:\d{1,5}")
_URL: Final = re.compile(
    r"(?i:dfesp)://(?P<host>[^\s/:,?]+):(?P<port>\d{1,5})"
    r"/(?P<project>[^\s/,?]+)/(?P<query>[^\s/,?]+)/(?P<window>[^\s/,?]+)(\?(?P<options>\S*))?"
)
_CONNECTION: Final = frozenset({"type", "url", "transport", "transportconfigfile", "active"})
_TABLE: Final = "table"
_TABLE_PROPERTIES: Final = frozenset({"connectstring", "desttablename", "rmretdel"})
_WITHOUT_EFFECT: Final = {
    "blocksize": "transactions are made by time and size",
    "transactional": "transactions are made by time and size",
    "prebuffer": "rows are published as they are read",
    "quiesceproject": "a project goes on",
    "ignorecsvparseerrors": "rows that cannot be read become dead letters, and the others go on",
    "loglevel": "logs have one level",
    "logconfigfile": "logs are lines of JSON",
    "configfilesection": "there is no such file",
    "unbufferedoutputstreams": "what is written is on the disk",
    "commitrows": "transactions are made by time and size",
    "commitsecs": "transactions are made by time and size",
    "maxcolbinding": "columns have any width",
    "ignoresqlerrors": "a row that the database refuses stops the adapter, so none is lost",
    "pwdencrypted": "the password is given in PGPASSWORD",
    "cashostport": "rows go to a database, not to CAS",
}
_ROTATION: Final = {"periodicity": "rotateSeconds", "maxfilesize": "rotateBytes"}
_RATE: Final = "rows pass as fast as they come"
_ENDLESS: Final = "the adapter does not end with the file; it waits for more until it is ended"
_DATES: Final = (
    "dates are written as on the topic: say it in property dateformat of the window's Kafka "
    "connector"
)
_SNAPSHOT: Final = "everything that the topic holds is written, from its first record"


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


@dataclass
class _Findings:
    """Notes and problems, each one once."""

    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def refuse(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)


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
    if line.program not in _PROGRAMS:
        return Translation(problems=(_no_substitute(line.program),))
    found = _Findings(problems=list(line.problems))
    values = dict(line.properties)
    cfg = _kafka(values, read, given.kafka_cfg, found)
    if cfg.date_format and not values.get("dateformat"):
        values["dateformat"] = cfg.date_format
    project, window, prefix = _url(values.get("url", ""), found)
    direction = _direction(values, found)
    config = None
    if direction is not None:
        kind, settings = _settings(line.program, direction, values, given.database, found)
        group = cfg.group if cfg.failover and direction == "pub" else ""
        file = values.get("fsname") or values.get("desttablename", "")
        made = given.name or _name(group or Path(file).stem, window, group or file)
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


def translate_file(
    direction: Direction, window: str, properties: Mapping[str, str], label: str
) -> Translation:
    """Translate the properties of an fs connector in a model.

    Args:
        direction: of the connector.
        window: its window, "query/window".
        properties: by name.
        label: what tells the window's connectors apart.
    """
    found = _Findings()
    settings = _file(direction, properties, found)
    name = _name(window.rpartition("/")[2], window, label)
    config = _config(direction, {"name": name, "window": window, "file": settings}, found)
    return Translation(config=config, notes=tuple(found.notes), problems=tuple(found.problems))


def _settings(
    program: str,
    direction: Direction,
    values: Mapping[str, str],
    database: str,
    found: _Findings,
) -> tuple[str, dict[str, Any]]:
    if program == FILE_ADAPTER:
        return "file", _file(direction, values, found)
    if _TABLE not in [one.name for one in adapters(direction)]:
        found.refuse(_no_substitute(program))
        return "file", {}
    return _TABLE, _table(program, values, database, found)


def _table(
    program: str, values: Mapping[str, str], database: str, found: _Findings
) -> dict[str, Any]:
    """Return the settings of a table; what stands in a connectstring is never repeated."""
    _check_names(values, _TABLE_PROPERTIES | _CONNECTION, found)
    if values.get("rmretdel", "").strip().lower() == "true":
        found.refuse("rmretdel cannot be followed: rows are written as they are on the topic")
    place = database or postgres_url(values.get("connectstring", ""))
    if not place:
        found.refuse(
            "nothing says which database it is: give --database, "
            "postgresql://[USER@]HOST[:PORT]/DATABASE or a file of SQLite"
        )
    name = values.get("desttablename", "").strip()
    if not name:
        found.refuse("the name of the table is missing: property desttablename")
    if "pwd" in values.get("connectstring", "").lower():
        found.note("the password of connectstring is not taken over: give it in PGPASSWORD")
    # CAS tables take each event as a row; databases have the rows of the window.
    mode = {"mode": "append"} if program == CAS_ADAPTER else {}
    where = "url" if place.startswith("postgresql:") else "path"
    return {where: place, "table": name, **mode}


def _no_substitute(program: str) -> str:
    sources, targets = (", ".join(one.name for one in adapters(way)) for way in ("pub", "sub"))
    return (
        f"there is no substitute for {program[:60]!r} (there are adapters of type pub for: "
        f"{sources}; of type sub for: {targets})"
    )


def _file(direction: Direction, values: Mapping[str, str], found: _Findings) -> dict[str, Any]:
    name = values.get("fsname", "").strip()
    tokens = open_tokens({"fsname": name})
    if tokens:
        found.refuse(f"fsname: nothing says what @{tokens[0]}@ is")
    if _SOCKET.fullmatch(name):
        found.refuse(
            f"fsname {name!r} is a socket, and this adapter is one of files; configure an adapter "
            f'with "socket": {{"connect": "{name}"}} in place of "file"'
        )
    if "$" in name:
        found.note(f"fsname {name!r}: variables are the shell's; write what they stand for")
    own = SOURCE_PROPERTIES if direction == "pub" else TARGET_PROPERTIES | {*_ROTATION, "rate"}
    _check_names(values, own | _CONNECTION, found)
    read = _input_file if direction == "pub" else _output_file
    try:
        return read(values, found)
    except (ValueError, ValidationError) as error:
        found.refuse(_first(error))
        return {}


def _check_names(values: Mapping[str, str], known: Set[str], found: _Findings) -> None:
    for one in values:
        if one in _WITHOUT_EFFECT:
            found.note(f"{one} has no effect: {_WITHOUT_EFFECT[one]}")
        elif one not in known:
            found.refuse(f"property {one[:60]!r} is not known")


def _input_file(values: Mapping[str, str], found: _Findings) -> dict[str, Any]:
    source = file_source(values)
    if source.layout.format != "csv":
        found.refuse(f"fstype {source.layout.format} is not read by the file adapter; use csv")
    if source.rate:
        found.note(f"rate has no effect: {_RATE}")
    for name in ("repeatcount", "maxevents"):
        if whole_property(values, name, 0):
            found.refuse(f"{name} cannot be followed: a file is published whole, and once")
    if not source.growing:
        found.note(_ENDLESS)
    layout = CsvLayout.model_validate(
        source.layout.model_dump(include=set(CsvLayout.model_fields))
    ).model_dump(by_alias=True, exclude_defaults=True)
    growing = {"growing": True} if source.growing else {}
    return {"path": source.file, **growing, **layout}


def _output_file(values: Mapping[str, str], found: _Findings) -> dict[str, Any]:
    target = file_target(values)
    if target.format == "xml":
        found.refuse("fstype xml is not written by the file adapter; use csv or json")
    if target.collapse:
        found.refuse("collapse cannot be followed: records are written as they are on the topic")
    if target.drop_retention_deletes:
        found.refuse("rmretdel cannot be followed: records are written as they are on the topic")
    if values.get("rate"):
        found.note(f"rate has no effect: {_RATE}")
    if target.snapshot:
        found.note(f"snapshot has no effect: {_SNAPSHOT}")
    if target.date_format:
        found.note(f"dateformat has no effect: {_DATES}")
    if values.get("doubleprecision"):
        found.note(f"doubleprecision has no effect: {_DATES.replace('dateformat', 'it')}")
    rotation = {ours: whole_property(values, name, 0) for name, ours in _ROTATION.items()}
    return {
        "path": target.file,
        **({"format": "json"} if target.format == "json" else {}),
        **({} if target.header == "none" else {"header": target.header}),
        **{name: limit for name, limit in rotation.items() if limit},
    }


def _url(text: str, found: _Findings) -> tuple[str, str, str]:
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


def _url_option(option: str, on: bool, found: _Findings) -> None:
    if option in {"collapse", "rmretdel"} and on:
        found.refuse(f"url: {option}=true cannot be followed: records are written as they are")
    elif option == "snapshot" and on:
        found.note(f"url: snapshot=true has no effect: {_SNAPSHOT}")
    elif option not in {"collapse", "rmretdel", "snapshot"}:
        found.refuse(f"url: option {option[:60]!r} is not known")


def _direction(values: Mapping[str, str], found: _Findings) -> Direction | None:
    text = values.get("type", "").strip().lower()
    known = _DIRECTIONS.get(text)
    if known is None:
        found.refuse("type is missing: pub or sub" if not text else "type must be pub or sub")
    return known


def _kafka(
    values: Mapping[str, str],
    read: Callable[[Path], str],
    instead: Path | None,
    found: _Findings,
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
        found.refuse(f"{path or _DEFAULT_CFG}: {_first(error)}")
        return KafkaCfg()
    for note in cfg.notes:
        found.note(f"{path or _DEFAULT_CFG}: {note}")
    for problem in cfg.problems:
        found.refuse(f"{path or _DEFAULT_CFG}: {problem}")
    if cfg.failover and not cfg.group:
        found.refuse(f"{path or _DEFAULT_CFG}: sas: hotfailover needs a failovergroup")
    return cfg


def _config(
    direction: Direction, values: Mapping[str, Any], found: _Findings
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


def _first(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors()[0]
        return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
    return str(error)
