"""What must come out, computed from the input topic alone and without the engine's code.

It knows chains of windows that keep every field of the source and add sums over the last rows to
it, such as the sample model's; `--sum-window` names each sum.
"""

import csv
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from espha.model import Field, Window


class Read(NamedTuple):
    """A record as it was read from a topic."""

    offset: int
    value: str
    id: str = ""


class Wanted(NamedTuple):
    """An output that must come: its message id and its values."""

    id: str
    values: dict[str, str | float | None]


@dataclass(frozen=True, slots=True)
class SumWindow:
    """`output` is the sum of `field` over the last `length` rows, this one included."""

    field: str
    length: int
    output: str

    @classmethod
    def parse(cls, text: str) -> "SumWindow":
        """Read `field:length:output`.

        Raises:
            ValueError: it is something else; says what is expected.
        """
        parts = text.split(":")
        if len(parts) != 3 or not all(parts) or not parts[1].isdigit() or int(parts[1]) < 1:
            raise ValueError(f"{text!r}: expected FIELD:LENGTH:OUTPUT, as Record_Counter:20:sum20")
        return cls(parts[0], int(parts[1]), parts[2])


class Expectation(NamedTuple):
    """What the output topic and the dead-letter topic must hold."""

    outputs: list[Wanted]
    dead: list[str]


def cells(line: str) -> list[str]:
    """Split one CSV record."""
    return next(csv.reader([line]), [])


def expect_sums(
    topic: str,
    rows: Iterable[Read],
    source: Window,
    sums: Sequence[SumWindow],
    skipped: Collection[int] = (),
) -> Expectation:
    """Compute the outputs of insert-only rows: every accepted row comes out with its sums.

    Args:
        topic: the input topic.
        rows: what it holds.
        source: the window that reads it.
        sums: what is added.
        skipped: offsets of rows that engines have set aside: dead letters.
    """
    autogen = bool(getattr(source, "autogen_key", False))
    last = {window: deque[float](maxlen=window.length) for window in sums}
    result = Expectation([], [])
    for row in rows:
        identity = f"{topic}:{row.offset}:0"
        values = _accept(cells(row.value), source.fields, autogen, len(result.outputs))
        if values is None or row.offset in skipped:
            result.dead.append(identity)
            continue
        for window, kept in last.items():
            addend = values[window.field]
            if isinstance(addend, int | float):
                kept.append(addend)
            values[window.output] = sum(kept)
        result.outputs.append(Wanted(identity, values))
    return result


def _accept(
    columns: list[str], fields: Sequence[Field], autogen: bool, number: int
) -> dict[str, str | float | None] | None:
    """Return a row's values, or None where a row is bad."""
    if len(columns) != len(fields) + 2 or columns[0].strip().upper() not in ("I", "P"):
        return None
    values: dict[str, str | float | None] = {}
    for field, text in zip(fields, columns[2:], strict=True):
        if field.key and autogen:
            values[field.name] = number
            continue
        try:
            values[field.name] = typed(field.type, text)
        except ValueError:
            return None
    return values


def typed(kind: str, text: str) -> str | float | None:
    """Return a cell's value: int, float or str; None for an empty one.

    Raises:
        ValueError: the text is not a number of this kind.
    """
    stripped = text.strip()
    if not stripped:
        return None
    if kind == "string":
        return text
    if kind in ("double", "money"):
        return float(stripped)
    value = int(stripped)
    if not -(2**63) <= value < 2**63 or (kind == "int32" and not -(2**31) <= value < 2**31):
        raise ValueError(f"{value} does not fit {kind}")
    return value


def differs(wanted: Wanted, line: str, fields: Sequence[Field]) -> list[str]:
    """Return the names of the fields in which an output line is not what was wanted.

    `opcode` stands for an opcode or flags other than `I,N`, `columns` for a wrong column count.
    """
    columns = cells(line)
    if len(columns) != len(fields) + 2:
        return ["columns"]
    wrong = [] if [columns[0], columns[1]] == ["I", "N"] else ["opcode"]
    for field, text in zip(fields, columns[2:], strict=True):
        try:
            same = typed(field.type, text) == wanted.values.get(field.name)
        except ValueError:
            same = False
        if not same:
            wrong.append(field.name)
    return wrong
