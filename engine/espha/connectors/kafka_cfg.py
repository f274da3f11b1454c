"""`kafka.cfg`: what tells an adapter of SAS Event Stream Processing where Kafka is.

Three forms are read, and what is in them is the same:

- that of the C++ adapters, sections one after the other: `kafka { hostport = "…" } sas { … }`;
- that of the Java adapters, sections in one block: `{ kafka = { … } sas = { … } }`;
- properties, one a line: `kafka.hostport=…`, or the names of Kafka's own clients.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple

from espha.connectors.files import whole_property

_CLIENTS: Final = {
    "bootstrap.servers": ("kafka", "hostport"),
    "auto.offset.reset": ("kafka", "initialoffset"),
    "group.id": ("kafka", "groupid"),
    "zookeeper.connect": ("sas", "zookeeperhostport"),
}
"""Names of Kafka's own clients."""
_WITHOUT_EFFECT: Final = {
    ("kafka", "groupid"): "positions are kept with the rows, not in a consumer group",
    ("kafka", "metatopic"): "the model's own XML says what the topics hold",
    ("kafka", "initialoffset"): "an adapter goes on where it was, and begins with the first record",
    ("kafka", "topicconfig"): "settings of librdkafka are not taken over",
    ("sas", "numbufferedmsgs"): "positions are kept with the rows, so nothing has to be buffered",
    ("sas", "protofile"): "records are CSV or JSON",
    ("sas", "protomsg"): "records are CSV or JSON",
}
_USED: Final = frozenset(
    {
        ("kafka", "hostport"),
        ("kafka", "partition"),
        ("kafka", "globalconfig"),
        ("sas", "hotfailover"),
        ("sas", "zookeeperhostport"),
        ("sas", "failovergroup"),
        ("sas", "dateformat"),
        ("sas", "protobuf"),
        ("sas", "json"),
    }
)
_TOKEN: Final = re.compile(
    r'(?P<skip>[ \t\r;,]+|(?:#|//)[^\n]*)|(?P<newline>\n)|(?P<sign>[{}=])|"(?P<text>[^"\n]*)"'
    r"|(?P<word>[^\s{}=;\"]+)"
)
_SECTIONS: Final = ("kafka", "sas")


class KafkaCfg(NamedTuple):
    """What a `kafka.cfg` says.

    Attributes:
        bootstrap: Kafka's servers.
        zookeeper: ZooKeeper's servers.
        failover: whether one of several adapters is active.
        group: the name that these have in common.
        date_format: of date and stamp columns.
        notes: a sentence for each setting that is unknown or has no effect here, with its line.
        problems: a sentence for each setting that cannot be followed, likewise. Values are not
            repeated in them: they may be passwords.
    """

    bootstrap: str = ""
    zookeeper: str = ""
    failover: bool = False
    group: str = ""
    date_format: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _Entry(NamedTuple):
    section: str
    name: str
    value: str
    line: int

    @property
    def key(self) -> tuple[str, str]:
        return self.section, self.name

    @property
    def place(self) -> str:
        where = f"{self.section}: " if self.section else ""
        return f"line {self.line}: {where}{self.name}"


def read_kafka_cfg(text: str) -> KafkaCfg:
    """Read a `kafka.cfg`.

    Raises:
        ValueError: it is none; the text names the line.
    """
    notes: list[str] = []
    entries = list(_entries(text, notes))
    values = {entry.key: entry.value for entry in entries}
    problems = [problem for entry in entries if (problem := _problem(entry))]
    for entry in entries:
        if entry.key not in _USED and entry.key not in _WITHOUT_EFFECT:
            notes.append(_unknown(entry))
        elif entry.key in _WITHOUT_EFFECT:
            notes.append(f"{entry.place} has no effect: {_WITHOUT_EFFECT[entry.key]}")
        elif entry.name == "globalconfig" and not _problem(entry):
            notes.append(f"{entry.place} has no effect: settings of librdkafka are not taken over")
    return KafkaCfg(
        bootstrap=values.get(("kafka", "hostport"), ""),
        zookeeper=values.get(("sas", "zookeeperhostport"), ""),
        failover=values.get(("sas", "hotfailover"), "").lower() == "true",
        group=values.get(("sas", "failovergroup"), ""),
        date_format=values.get(("sas", "dateformat"), ""),
        notes=tuple(notes),
        problems=tuple(problems),
    )


def _problem(entry: _Entry) -> str:
    """Return what is wrong with an entry, as a sentence; empty: nothing."""
    check = _CHECKS.get(entry.name) if entry.key in _USED else None
    reason = check(entry.value) if check else ""
    return f"{entry.place}: {reason}" if reason else ""


def _unknown(entry: _Entry) -> str:
    known = _known(entry.section)
    near = get_close_matches(entry.name, known, 1, 0.8)
    hint = f"is it {near[0]}?" if near else f"there are: {', '.join(known)}"
    return f"{entry.place} is not known, and not used ({hint})"


def _known(section: str) -> list[str]:
    every = sorted({*_USED, *_WITHOUT_EFFECT})
    if section in _SECTIONS:
        return [name for place, name in every if place == section]
    return [f"{place}.{name}" for place, name in every]


def _partition(value: str) -> str:
    try:
        return "topics have one partition; give 0" if whole_property({"": value}, "", 0) else ""
    except ValueError:
        return "give a whole number"


def _boolean(value: str) -> str:
    return "" if value.lower() in {"true", "false"} else "give true or false"


def _no(value: str) -> str:
    return _boolean(value) or ("records are CSV or JSON" if value.lower() == "true" else "")


def _own_json(value: str) -> str:
    text = "the model says the format: kafkatype in the window's Kafka connector; give false"
    return _boolean(value) or (text if value.lower() == "true" else "")


def _global(value: str) -> str:
    """Refuse what guards a connection: without it, everything else would be another's Kafka."""
    names = (pair.partition("=")[0].strip() for pair in value.split(";"))
    guards = [name for name in names if name.startswith(("security.", "sasl.", "ssl."))]
    return f"{', '.join(guards)}: connections to Kafka are plain" if guards else ""


_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {
    "partition": _partition,
    "hotfailover": _boolean,
    "protobuf": _no,
    "json": _own_json,
    "globalconfig": _global,
}


class _Reader:
    """Tokens with their lines."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self.line = text, 0, 1

    def next(self) -> tuple[str, str]:
        """Return kind (word, text, {, }, =, end) and content of the next token."""
        while self._at < len(self._text):
            found = _TOKEN.match(self._text, self._at)
            if found is None:
                raise ValueError(f"line {self.line}: there is a quote that is not closed")
            self._at = found.end()
            if found["newline"]:
                self.line += 1
            elif found["sign"]:
                return found["sign"], ""
            elif found["text"] is not None:
                return "text", found["text"]
            elif found["word"]:
                return "word", found["word"].rstrip(",")
        return "end", ""

    def peek(self) -> str:
        """Return the kind of the next token."""
        before = self._at, self.line
        kind, _ = self.next()
        self._at, self.line = before
        return kind

    def rest_of_line(self) -> str:
        """Return what is left of the line."""
        end = self._text.find("\n", self._at)
        end = len(self._text) if end < 0 else end
        found, self._at = self._text[self._at : end].strip(), end
        return found


def _entries(text: str, notes: list[str]) -> Iterator[_Entry]:
    reader = _Reader(text.removeprefix("\ufeff"))
    open_blocks: list[tuple[str, int]] = []
    while True:
        kind, name = reader.next()
        if kind == "end":
            break
        if kind == "}" and open_blocks:
            open_blocks.pop()
        elif kind == "{" and not open_blocks:
            open_blocks.append(("", reader.line))
        elif kind in {"word", "text"}:
            yield from _entry(reader, name, open_blocks)
        else:
            raise ValueError(f"line {reader.line}: {kind!r} is not expected here")
    for section, line in reversed(open_blocks):
        what = f"section {section!r}" if section else "the block"
        notes.append(f"line {line}: {what} is not closed; what stands in it is taken")


def _entry(reader: _Reader, name: str, open_blocks: list[tuple[str, int]]) -> Iterator[_Entry]:
    line = reader.line
    section = open_blocks[-1][0] if open_blocks else ""
    if section and name in _SECTIONS and reader.peek() == "{":
        raise ValueError(f"line {line}: {name!r} stands within {section!r}; is a '}}' missing?")
    if reader.peek() == "=":
        reader.next()
    elif reader.peek() != "{":
        raise ValueError(f"line {line}: {name!r} has no value")
    if reader.peek() == "{":
        reader.next()
        open_blocks.append((name, line))
        return
    value = _value(reader, name, line, flat=not open_blocks)
    if section or open_blocks:
        yield _Entry(section, name, value, line)
        return
    first, dot, second = name.partition(".")
    known = (first, second) if dot and first in _SECTIONS else _CLIENTS.get(name, ("", name))
    yield _Entry(*known, value, line)


def _value(reader: _Reader, name: str, line: int, *, flat: bool) -> str:
    if flat and reader.peek() != "text":
        return reader.rest_of_line()
    kind, value = reader.next()
    if kind not in {"word", "text"}:
        raise ValueError(f"line {line}: {name!r} has no value")
    return value
