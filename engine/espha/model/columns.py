"""Columns of a row of CSV to an event, as a layout says."""

from collections.abc import Callable, Sequence

from espha.model.csv import decoder
from espha.model.events import Event
from espha.model.filesystem import Layout
from espha.model.kinds.source import SourceWindow
from espha.model.project import Window


def defaults(layout: Layout) -> tuple[str, str]:
    """Return opcode and flags of rows that have none."""
    return ("P" if layout.upsert else "I", "P" if layout.partial else "N")


def left_out(window: Window, layout: Layout) -> int | None:
    """Return the place of the key field that has no column; None: all fields have one."""
    autogen = isinstance(window, SourceWindow) and window.autogen_key
    if not autogen or layout.autogen_field:
        return None
    return next(place for place, field in enumerate(window.fields) if field.key)


def csv_reader(window: Window, layout: Layout) -> Callable[[Sequence[str]], Event]:
    """Return the function that makes events of rows.

    Args:
        window: the source window.
        layout: which columns the rows have.

    The function raises BadRecord: another number of columns, or one of another type.
    """
    decode = decoder(window.fields, layout.date_format or None)
    width = len(window.fields) - (0 if layout.autogen_field else 1)
    missing = left_out(window, layout)

    def read(columns: Sequence[str]) -> Event:
        opcode, flags = defaults(layout)
        columns = list(columns)
        if layout.opcode and columns:
            opcode = columns.pop(0)
        # A file without opcodes seldom has flags, though nobody said so.
        if layout.flags and columns and (layout.opcode or len(columns) != width):
            flags = columns.pop(0)
        if missing is not None:
            columns.insert(missing, "")
        return decode(opcode, flags, columns)

    return read
