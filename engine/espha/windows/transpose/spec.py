"""Transpose windows: values of several events side by side (wide), or one below the other (long).

Wide, with tag-name="tag" tag-values="value" tags-included="pitch,yaw":

    id*, tag, value, place     ->     id*, pitch_value, yaw_value, place

Long is the way back: one event for each tag, and the tag's number is a part of the key.
"""

import re
from collections.abc import Container, Sequence
from typing import Final, Literal, NamedTuple

from espha.model.project import Field, Window
from espha.model.types import TypeName
from espha.windows.shared.intervals import read_interval
from espha.windows.shared.spec import Reading, WindowType

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NEVER: Final = frozenset({"", "never"})
MAX_TAGS: Final = 1_000
NUMBER: Final = Field("tagNum", "int32", True)
"""Which of the tags an event of a long window is for, from 0."""


class Cell(NamedTuple):
    """One value of one tag, and its field in the wide schema."""

    tag: str
    value: str
    field: str


class TransposeWindow(Window):
    """Transposes values.

    Attributes:
        mode: "wide" or "long".
        tag_name: the field that holds the tag, of the input (wide) or of this window (long).
        tag_values: the fields that hold the values, likewise.
        tags: the tags that are known.
        cells: for each tag, in order, one field of the wide schema for each of `tag_values`.
        group_by: fields of the input; each group has its own values (wide).
        clear_timeout: milliseconds without an event after which a group is forgotten; None: never.
    """

    type: Literal["transpose"] = "transpose"
    mode: Literal["wide", "long"]
    tag_name: str
    tag_values: tuple[str, ...]
    tags: tuple[str, ...]
    cells: tuple[Cell, ...]
    group_by: tuple[str, ...] = ()
    clear_timeout: int | None = None


def _read(reading: Reading) -> TransposeWindow | None:
    before = len(reading.findings.problems)
    element = reading.element
    mode = element.get("mode", "wide").strip().lower()
    if mode not in {"wide", "long"}:
        reading.refuse(f"mode {mode!r} is not one of: wide, long")
    tag_name = element.get("tag-name", "").strip()
    values, tags = _words(reading, "tag-values"), _words(reading, "tags-included")
    group_by = _words(reading, "group-by")
    timeout = _timeout(reading)
    _check_words(reading, tag_name, values, tags)
    if len(reading.findings.problems) > before:
        return None
    make = _wide_fields if mode == "wide" else _long_fields
    cells, fields = make(reading, tag_name, values, tags)
    _check_groups(reading, group_by)
    _check_doubles(reading, fields)
    if len(reading.findings.problems) > before:
        return None
    return TransposeWindow(
        **{**reading.common, "fields": fields},
        mode="wide" if mode == "wide" else "long",
        tag_name=tag_name,
        tag_values=values,
        tags=tags,
        cells=cells,
        group_by=group_by,
        clear_timeout=timeout,
    )


def _words(reading: Reading, attribute: str) -> tuple[str, ...]:
    parts = [part.strip() for part in reading.element.get(attribute, "").split(",")]
    return tuple(dict.fromkeys(part for part in parts if part))


def _timeout(reading: Reading) -> int | None:
    if reading.element.get("clear-timeout", "").strip().lower() in _NEVER:
        return None
    return read_interval(reading, "clear-timeout")


def _check_words(
    reading: Reading, tag_name: str, values: tuple[str, ...], tags: tuple[str, ...]
) -> None:
    for attribute, words in (
        ("tag-name", (tag_name,) if tag_name else ()),
        ("tag-values", values),
        ("tags-included", tags),
    ):
        if not words:
            reading.refuse(f"needs {attribute}")
        for word in words:
            if not _NAME.fullmatch(word):
                reading.refuse(f"{attribute}: {word!r} cannot be part of a field's name")
    if len(tags) * len(values) > MAX_TAGS:
        reading.refuse(f"more than {MAX_TAGS} values side by side")


Read = tuple[tuple[Cell, ...], tuple[Field, ...]]


def _wide_fields(
    reading: Reading, tag_name: str, values: tuple[str, ...], tags: tuple[str, ...]
) -> Read:
    """Return the input with a field for each value of each tag, in the place of the tag."""
    types = {field.name: field for field in reading.feed}
    for name in (tag_name, *values):
        if name not in types:
            reading.refuse(f"{name!r} is not a field of the input")
        elif types[name].key:
            reading.refuse(f"field {name!r} is a key; it cannot be transposed")
    if tag_name in types and types[tag_name].type != "string":
        reading.refuse(f"the tag {tag_name!r} is {types[tag_name].type}; it must be a string")
    before, after = _split(reading.feed, tag_name, {tag_name, *values})
    cells = tuple(Cell(tag, value, f"{tag}_{value}") for tag in tags for value in values)
    added = [Field(cell.field, types[cell.value].type) for cell in cells if cell.value in types]
    return cells, (*before, *added, *after)


def _split(
    feed: Sequence[Field], first: str, taken: Container[str]
) -> tuple[list[Field], list[Field]]:
    """Return the fields before and behind the field `first`, without those that are taken."""
    names = [field.name for field in feed]
    place = names.index(first) if first in names else len(names)
    before, after = feed[:place], feed[place:]
    return (
        [field for field in before if field.name not in taken],
        [field for field in after if field.name not in taken],
    )


def _long_fields(
    reading: Reading, tag_name: str, values: tuple[str, ...], tags: tuple[str, ...]
) -> Read:
    """Return the keys with the tag's number, the tag and its values, and the other fields."""
    types = {field.name: field for field in reading.feed}
    cells = tuple(_long_cell(tag, value, values, types) for tag in tags for value in values)
    found: dict[str, TypeName] = {}
    for cell in cells:
        field = types.get(cell.field)
        if field is None:
            reading.refuse(f"{cell.field!r} is not a field of the input")
        elif field.key:
            reading.refuse(f"field {cell.field!r} is a key; it cannot be transposed")
        elif found.setdefault(cell.value, field.type) != field.type:
            reading.refuse(
                f"field {cell.field!r} is {field.type}, that of another tag is {found[cell.value]}"
            )
    taken = {cell.field for cell in cells}
    kept = [field for field in reading.feed if field.name not in taken]
    keys = [field for field in kept if field.key]
    first = next((field.name for field in reading.feed if field.name in taken), "")
    before, after = _split(reading.feed, first, {*taken, *(field.name for field in keys)})
    added = [Field(tag_name, "string"), *(Field(value, type_) for value, type_ in found.items())]
    return cells, (*keys, NUMBER, *before, *added, *after)


def _long_cell(tag: str, value: str, values: tuple[str, ...], types: dict[str, Field]) -> Cell:
    """Return the cell of a tag's value; a single value may be in a field named like its tag."""
    field = f"{tag}_{value}"
    alone = len(values) == 1 and field not in types and tag in types
    return Cell(tag, value, tag if alone else field)


def _check_groups(reading: Reading, group_by: tuple[str, ...]) -> None:
    names = {field.name for field in reading.feed}
    for name in group_by:
        if name not in names:
            reading.refuse(f"group-by: {name!r} is not a field of the input")


def _check_doubles(reading: Reading, fields: tuple[Field, ...]) -> None:
    names = [field.name for field in fields]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reading.refuse(f"field {name!r} would occur twice in the schema; rename it in the input")


WINDOW = WindowType(
    "transpose",
    _read,
    "computation",
    attributes=frozenset(
        {"mode", "tag-name", "tag-values", "tags-included", "clear-timeout", "group-by"}
    ),
)
