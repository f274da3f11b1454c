"""Command lines of adapters (`dfesp_fs_adapter …`) as properties; they are read, never run."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

FILE_ADAPTER: Final = "dfesp_fs_adapter"
DATABASE_ADAPTER: Final = "dfesp_db_adapter"
CAS_ADAPTER: Final = "dfesp_cas_adapter"
URL_ADAPTER: Final = "dfesp_url_adapter"
STREAM_ADAPTERS: Final[Mapping[str, str]] = {
    "dfesp_kafka_adapter": "kafka",
    "dfesp_mqtt_adapter": "mqtt",
    "dfesp_socket_adapter": "socket",
}
"""Adapters whose properties are those of connectors, and what is meant."""

_COMMON: Final = {"-k": "type", "-h": "url"}
_VALUED: Final[Mapping[str, Mapping[str, str]]] = {
    FILE_ADAPTER: {
        **_COMMON,
        "-f": "fsname",
        "-t": "fstype",
        "-b": "blocksize",
        "-d": "dateformat",
        "-r": "rate",
        "-m": "maxevents",
        "-x": "header",
        "-F": "addcsvflags",
        "-c": "periodicity",
        "-s": "maxfilesize",
        "-l": "transport",
        "-j": "transportconfigfile",
    },
    DATABASE_ADAPTER: _COMMON,
    CAS_ADAPTER: {
        **_COMMON,
        "-H": "cashostport",
        "-t": "desttablename",
        "-l": "loglevel",
        "-L": "transport",
    },
}
"""Switches with a value, and the property that each of them is."""
_SET: Final[Mapping[str, Mapping[str, str]]] = {
    FILE_ADAPTER: {
        "-i": "growinginputfile",
        "-O": "addcsvopcode",
        "-A": "noautogenfield",
        "-Q": "quiesceproject",
    },
}
"""Switches without one: the property is true."""

_QUOTES: Final = str.maketrans("\u201c\u201d\u2018\u2019", "\"\"''")
"""Pages have typographic quotes where people typed others."""
_ENDS: Final = re.compile(r"[|;&<>]+")
_LONG: Final = re.compile(r"--([A-Za-z][A-Za-z0-9]*)")
_SHOWN = 60


class CommandLine(NamedTuple):
    """What a command line says.

    Attributes:
        program: the adapter's name, without folder and `.exe`.
        properties: by name; the last one counts.
        problems: a sentence for each switch that is not understood. Values are not repeated in
            them: they may be passwords.
    """

    program: str
    properties: Mapping[str, str]
    problems: tuple[str, ...]


def read_command(text: str) -> CommandLine:
    """Read a command line as it stands in a script or on a page.

    Prompts, `nohup` and variables before the program, and what stands behind `&`, `|` or `>` are
    left out. Quotes may be typographic ones.

    Raises:
        ValueError: there is no program in it, or a quote is not closed.
    """
    words = _words(text)
    starts = [at for at, word in enumerate(words) if _program(word).startswith("dfesp_")]
    rest = words[starts[0] if starts else 0 :]
    end = next((at for at, word in enumerate(rest) if _ENDS.fullmatch(word)), len(rest))
    if end < len(rest) and rest[end].startswith(">") and rest[end - 1].isdigit():
        end -= 1  # 2> is one thing to a shell
    if end < 1:
        raise ValueError("there is no command")
    return read_words(_program(rest[0]), rest[1:end])


def read_words(program: str, words: Sequence[str]) -> CommandLine:
    """Read what stands behind a program's name: switches, `-C name=value,…`, `--name value`."""
    valued = _VALUED.get(program, _COMMON)
    unvalued = _SET.get(program, {})
    properties: dict[str, str] = {}
    problems: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        long = _LONG.match(word)
        if word in unvalued:
            properties[unvalued[word]] = "true"
        elif long and "=" in word:
            properties[long[1].lower()] = word.partition("=")[2]
        elif word == "-C" or word in valued or long:
            if not left:
                problems.append(f"option {word} has no value")
            elif word == "-C":
                _take_pairs(left.pop(0), properties, problems)
            else:
                properties[long[1].lower() if long else valued[word]] = left.pop(0)
        else:
            problems.append(_unknown(word))
            if word.startswith("-") and left and not left[0].startswith("-"):
                left.pop(0)
    return CommandLine(program, properties, tuple(problems))


def adapter_properties(command: str) -> dict[str, str]:
    """Return the properties of an fs connector that does what a file adapter's command says.

    Understood are `dfesp_fs_adapter -C name=value,name=value` and `-k pub -f file -t csv …`.

    Raises:
        ValueError: it is another adapter, or an option is not known; the text says which.
    """
    if not command.strip():
        raise ValueError("property 'command' is missing")
    line = read_command(command)
    if line.program != FILE_ADAPTER:
        raise ValueError(f"there is no substitute for {line.program[:_SHOWN]!r}")
    if line.problems:
        raise ValueError(line.problems[0])
    return dict(line.properties)


def _words(text: str) -> list[str]:
    reader = shlex.shlex(
        text.translate(_QUOTES).replace("\\\n", " "), posix=True, punctuation_chars="|;&<>"
    )
    reader.whitespace_split, reader.commenters = True, ""
    try:
        return list(reader)
    except ValueError:
        raise ValueError("there is a quote that is not closed") from None


def _program(word: str) -> str:
    return re.split(r"[/\\]", word)[-1].removesuffix(".exe")


def _unknown(word: str) -> str:
    if not word.startswith("-"):
        return f"{word[:_SHOWN]!r} belongs to no option"
    name = word.partition("=")[0]
    return f"option {name[:_SHOWN]!r} is not known; what it means can be given as -C name=value"


def _take_pairs(text: str, properties: dict[str, str], problems: list[str]) -> None:
    for name, value in _pairs(text):
        if name:
            properties[name] = value
        else:
            problems.append("-C: its value does not begin with name=")


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    r"""Read `name=value,name=value`; a part without `name=` goes on with the value before it."""
    name, value = "", ""
    for part in text.split(","):
        start, equals, rest = part.partition("=")
        if equals and start.strip().isidentifier():
            if name:
                yield name, value
            name, value = start.strip().lower(), rest
        elif name:
            value += f",{part}"
        else:
            yield "", part
    if name:
        yield name, value
