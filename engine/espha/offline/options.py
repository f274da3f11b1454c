"""What stands behind `--set`, `--input`, `--trace`, `--watch` and `--plot`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from espha.model import Project
from espha.model.dates import check_date_format
from espha.offline.plot import ENDINGS, drawable
from espha.records.layout import Format, Layout, read_delimiter

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_LARGEST = 1_000_000_000
_FORMATS: Final[dict[str, Format]] = {".json": "json", ".jsonl": "json", ".xml": "xml"}
"""What a file is by the end of its name; any other is CSV."""


class UsageError(Exception):
    """A command line that cannot be meant; the text says what to write."""


@dataclass(frozen=True, slots=True)
class InputOption:
    """One `--input`: a file for a source window; `block` rows are published together."""

    window: str
    file: Path
    layout: Layout
    block: int = 1


@dataclass(frozen=True, slots=True)
class TraceOption:
    """One `--trace`: a file for what leaves a window."""

    window: str
    file: Path


@dataclass(frozen=True, slots=True)
class PlotOption:
    """One `--plot`: a picture of fields of a window; no fields: all that can be drawn."""

    window: str
    fields: tuple[str, ...]
    file: Path


def read_settings(texts: Iterable[str]) -> dict[str, str]:
    """Read `NAME=VALUE`s; a later one wins.

    Raises:
        UsageError: no `=`, or no name that a token can have.
    """
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().strip("@")
        if not equals or not _NAME.fullmatch(name):
            raise UsageError(f"--set {text!r}: write NAME=VALUE, for the token @NAME@")
        settings[name] = value
    return settings


def read_input(text: str, project: Project) -> InputOption:
    """Read `WINDOW=FILE[,header=1,noopcode,noautogenfield,dateformat=…,block=N,…]`.

    Raises:
        UsageError: no such source window, no such option, or a value that it cannot have.
    """
    window, rest = _window_and_rest(text, "--input", project)
    if project.windows[window].type != "source":
        raise UsageError(f"--input {text!r}: {window} is not a source window")
    file, *words = rest.split(",")
    default = _FORMATS.get(Path(file).suffix.lower(), "csv")
    option = InputOption(window, Path(file), Layout(format=default))
    for word in _joined(words):
        option = _with(option, word, text)
    return option


def read_trace(text: str, project: Project) -> TraceOption:
    """Read `WINDOW=FILE`.

    Raises:
        UsageError: no such window.
    """
    window, file = _window_and_rest(text, "--trace", project)
    return TraceOption(window, Path(file))


def read_plot(text: str, project: Project) -> PlotOption:
    """Read `WINDOW[:FIELD,FIELD…]=FILE`.

    Raises:
        UsageError: no such window, no such field of numbers, or a file that is no picture.
    """
    target, equals, file = text.partition("=")
    name, _, listed = target.partition(":")
    if not equals or Path(file).suffix.lower() not in ENDINGS:
        endings = ", ".join(ENDINGS)
        raise UsageError(f"--plot {text!r}: write WINDOW:FIELD,FIELD=FILE, ending in {endings}")
    try:
        window = find_window(name.strip(), project)
    except UsageError as error:
        raise UsageError(f"--plot {text!r}: {error}") from None
    known = [field.name for field in drawable(project.windows[window])]
    fields = tuple(field.strip() for field in listed.split(",") if field.strip())
    for field in fields:
        if field not in known:
            shown = ", ".join(known) or "none"
            raise UsageError(f"--plot {text!r}: {field!r} is not one of its numbers: {shown}")
    if not known:
        raise UsageError(f"--plot {text!r}: {window} has no field of numbers")
    return PlotOption(window, fields, Path(file))


def find_window(name: str, project: Project) -> str:
    """Return the path "query/window" for `window` or `query/window`.

    Raises:
        UsageError: there is no such window, or several; the text lists them.
    """
    if name in project.windows:
        return name
    found = [path for path, window in project.windows.items() if window.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"there are several windows {name!r}: write {' or '.join(found)}")
    shown = ", ".join(list(project.windows)[:20])
    raise UsageError(f"there is no window {name!r}; the model has {shown}")


def _window_and_rest(text: str, option: str, project: Project) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not equals or not rest or rest.startswith(","):
        raise UsageError(f"{option} {text!r}: write WINDOW=FILE")
    try:
        return find_window(name.strip(), project), rest
    except UsageError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None


def _joined(words: Iterable[str]) -> list[str]:
    """Put words together again that a comma in a dateformat or the delimiter `,` separated."""
    result: list[str] = []
    for word in words:
        name = word.partition("=")[0].strip().lower()
        if name not in _OPTIONS and result and result[-1].startswith(("dateformat=", "delimiter=")):
            result[-1] += f",{word}"
        else:
            result.append(word)
    return result


_SWITCHES: Final[dict[str, dict[str, object]]] = {
    "noopcode": {"opcode": False, "flags": False},
    "noflags": {"flags": False},
    "noautogenfield": {"autogen_field": False},
    "upsert": {"upsert": True},
    "json": {"format": "json"},
    "csv": {"format": "csv"},
    "xml": {"format": "xml"},
}
"""Words without a value, and what they say of the layout."""

_OPTIONS = ("header", *_SWITCHES, "dateformat", "delimiter", "block")


def _with(option: InputOption, word: str, text: str) -> InputOption:
    name, equals, value = word.partition("=")
    name = name.strip().lower()
    layout = option.layout
    if name not in _OPTIONS:
        raise UsageError(f"--input {text!r}: {word!r} is not one of the options: {_listed()}")
    if name == "block":
        return replace(option, block=_number(value, 1, f"--input {text!r}: block"))
    if name == "header":
        lines = _number(value, 0, f"--input {text!r}: header") if equals else 1
        return replace(option, layout=_changed(layout, header_lines=lines))
    if name == "dateformat":
        return replace(option, layout=_changed(layout, date_format=_date_format(value, text)))
    if name == "delimiter":
        return replace(option, layout=_changed(layout, delimiter=_delimiter(value, text)))
    if equals:
        raise UsageError(f"--input {text!r}: {name} has no value")
    return replace(option, layout=_changed(layout, **_SWITCHES[name]))


def _changed(layout: Layout, **changes: object) -> Layout:
    return layout.model_copy(update=changes)


def _date_format(value: str, text: str) -> str:
    try:
        return check_date_format(value)
    except ValueError as error:
        raise UsageError(f"--input {text!r}: {error}") from None


def _delimiter(value: str, text: str) -> str:
    try:
        return read_delimiter(value)
    except ValueError as error:
        raise UsageError(f"--input {text!r}: {error}") from None


def _number(value: str, least: int, where: str) -> int:
    if value.isascii() and value.isdigit() and len(value) < 11:
        number = int(value)
        if least <= number <= _LARGEST:
            return number
    raise UsageError(f"{where} is {value!r}; give a whole number from {least}")


def _listed() -> str:
    return ", ".join(_OPTIONS)
