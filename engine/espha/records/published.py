"""What the scripts of publishers give, as events of a source window."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from espha.model import Window
from espha.model.events import BadRecord, Event
from espha.records.layout import Layout
from espha.records.rows import csv_rows
from espha.records.text import event_reader, read_flags, read_opcode
from espha.scripts.publishers.common import Csv, Item


class Made(NamedTuple):
    """What an item is.

    Attributes:
        line: of an item that is CSV, from 1; otherwise 0.
        event: the event; None: it is none.
        reason: why it is none.
        content: what it is made of: cells, or values by the names of fields.
    """

    line: int
    event: Event | None
    reason: str
    content: Any


def item_reader(window: Window, date_format: str) -> Callable[[Item], Iterator[Made]]:
    """Return the function that makes events of what a publisher gives."""
    layout = Layout(opcode=False, flags=False, date_format=date_format)
    read = event_reader(window, layout)

    def event(content: Any, opcode: str, flags: str) -> Event:
        found = read(content)
        return found._replace(
            opcode=read_opcode(opcode) if opcode else found.opcode,
            flags=read_flags(flags) if flags else found.flags,
        )

    def made(line: int, content: Any, opcode: str, flags: str) -> Made:
        try:
            return Made(line, event(content, opcode, flags), "", content)
        except BadRecord as refusal:
            return Made(line, None, refusal.reason, content)

    def items(item: Item) -> Iterator[Made]:
        if not isinstance(item, Csv):
            content = dict(item)
            opcode = str(content.pop("_opcode", None) or content.get("opcode") or "")
            flags = str(content.pop("_flags", ""))
            yield made(0, {**content, "opcode": "I", "flags": "N"}, opcode, flags)
            return
        line = 1
        for row in csv_rows(item.text.encode("utf-8", "surrogateescape"), layout, final=True):
            if row.content:
                yield made(line, row.content, item.opcode, item.flags)
            line += row.lines

    return items
