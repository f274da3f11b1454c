"""Records of output topics, for targets that want values instead of text."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from espha.adapters.copying import Taken
from espha.connectors.files import record_style
from espha.model import Window
from espha.model.events import BadRecord, Event
from espha.records.layout import Layout
from espha.records.text import decoder, record_reader, split


class Rejected(NamedTuple):
    """A record that cannot be read as a row of the window.

    Attributes:
        offset: where it is on the topic.
        reason: a sentence.
        text: what it says; bytes that are no UTF-8 are replaced.
    """

    offset: int
    reason: str
    text: str

    def line(self) -> bytes:
        """Return it as an object of JSON."""
        content = {"rejected": self.reason, "offset": self.offset, "record": self.text}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def rejected(record: Taken, reason: str) -> Rejected:
    """Set a record aside."""
    return Rejected(record.offset, reason, record.value.decode(errors="replace"))


Read = Callable[[Iterable[Taken]], Iterator[tuple[Taken, Event | Rejected]]]


def output_reader(window: Window) -> Read:
    """Return the function that reads records of a window's output topic.

    Raises:
        ValueError: a property of the window's Kafka connector cannot be.
    """
    read = _text_reader(window)

    def each(records: Iterable[Taken]) -> Iterator[tuple[Taken, Event | Rejected]]:
        for record in records:
            try:
                yield record, read(record.value.decode())
            except UnicodeDecodeError:
                yield record, rejected(record, "the record is not text in UTF-8")
            except BadRecord as error:
                yield record, rejected(record, error.reason)

    return each


def _text_reader(window: Window) -> Callable[[str], Event]:
    style = record_style(window)
    if style.format == "json":
        return record_reader(window, Layout(format="json", date_format=style.date_format))
    decode = decoder(window.fields, style.date_format or None)

    def read(text: str) -> Event:
        cells = split(text.rstrip("\r\n"))
        if len(cells) < 2:
            raise BadRecord("the record has no opcode and flags")
        return decode(cells[0], cells[1], cells[2:])

    return read
