"""Events of XML: `<event>` elements at any depth, with an element or an attribute a field."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from lxml import etree

from espha.model.events import Event
from espha.model.problems import line_of
from espha.model.project import Field
from espha.model.types import formatter
from espha.records.layout import Layout, Style
from espha.records.rows import MAX_RECORD, Raw, RowFile

OPENING: Final = "<events>"
CLOSING: Final = "</events>"
"""What stands around the events of a file."""


class XmlFile:
    """The events of an XML file; see `espha.records.rows.RowFile`.

    XML ends with its root, so nobody can write on. Text that is not well-formed ends it, too.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            OSError: it cannot be read.
        """
        self._file = path.open("rb")
        self.size = os.fstat(self._file.fileno()).st_size
        self._events = self._read()

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self._file.tell()

    def next(self, limit: int, *, final: bool) -> list[Raw]:
        """Return up to `limit` events, fewer only at the end."""
        found: list[Raw] = []
        while len(found) < limit:
            event = next(self._events, None)
            if event is None:
                break
            found.append(event)
        return found

    def rewind(self) -> None:
        """Begin again at the first event."""
        self._file.seek(0)
        self._events = self._read()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _read(self) -> Iterator[Raw]:
        try:
            for _, element in etree.iterparse(
                self._file,
                events=("end",),
                tag="event",
                resolve_entities=False,
                no_network=True,
                load_dtd=False,
                huge_tree=False,
            ):
                yield _row(element)
                element.clear()
                # What has been read would stay in memory otherwise.
                while element.getprevious() is not None:
                    del element.getparent()[0]
        except etree.XMLSyntaxError as error:
            yield Raw(error.lineno or 1, [], f"not well-formed XML: {error.msg}")


def _row(element: etree._Element) -> Raw:
    line = line_of(element)
    content: dict[str, Any] = {str(name): str(text) for name, text in element.attrib.items()}
    for child in element:
        if isinstance(child.tag, str):
            content[child.tag] = "".join(str(part) for part in child.itertext())
    if sum(map(len, content.values())) > MAX_RECORD:
        return Raw(line, [], f"the event has more than {MAX_RECORD} characters")
    # An element without text is null, like an empty cell.
    return Raw(line, {name: text if text.strip() else None for name, text in content.items()})


def open_rows(path: Path, layout: Layout) -> RowFile | XmlFile:
    """Open a file of rows.

    Raises:
        OSError: it cannot be read.
    """
    return XmlFile(path) if layout.format == "xml" else RowFile(path, layout)


def xml_writer(fields: Sequence[Field], style: Style) -> Callable[[Event], str]:
    """Return the function that writes an event as an element, in one line."""
    precision = 6 if style.precision is None else style.precision
    writers = [
        (
            field.name,
            ' key="true"' if field.key else "",
            formatter(field.type, style.date_format, precision),
        )
        for field in fields
    ]

    def line(event: Event) -> str:
        cells = [
            f"<{name}{key}>{escape(write(value))}</{name}>"
            for (name, key, write), value in zip(writers, event.values, strict=True)
            if value is not None
        ]
        head = f"<opcode>{event.opcode}</opcode><flags>{event.flags}</flags>"
        return f"<event>{head}{''.join(cells)}</event>"

    return line
