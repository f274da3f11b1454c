"""What a source has got, as records of a window's input topic."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from espha.adapters.config import ConfigError
from espha.adapters.formats.encodings import UTF_8, payload_to_utf8, wrong_bytes, wrong_cell
from espha.adapters.formats.refused import not_a_row
from espha.adapters.formats.spec import InputFormat, LinesIn
from espha.connectors.files import record_layout
from espha.model import Window
from espha.model.events import BadRecord, Event
from espha.protocol.sizes import ROW_BYTES
from espha.records.layout import CsvColumns, CsvLayout, Layout, Style
from espha.records.rows import MAX_RECORD, csv_rows, decode, encode
from espha.records.text import (
    NOT_AN_OBJECT,
    canonical_writer,
    event_writer,
    json_reader,
)

Write = Callable[[Event], str]


class Incoming(Protocol):
    """Makes records of payloads."""

    def records(self, payload: bytes, where: str) -> list[bytes]:
        """Return the records of the input topic that a payload makes, one for each of its rows.

        What is no row becomes a record that no engine takes; its dead letter says where it was and
        why. A row with a value of another type may be passed on as it is: the engine refuses it.

        Args:
            payload: all of a message, or a line of a stream.
            where: the source and the place in it, for people: `topic x, offset 7`.

        Raises:
            ConfigError: the schema does not fit the window's; nothing may be published.
            OSError: what is needed to read it is away. The same call may do better later: the
                source stays where it is.
        """
        ...


def incoming(window: Window, given: InputFormat | LinesIn) -> Incoming:
    """Return what makes records of a window's topic of payloads that are written like this.

    Raises:
        ConfigError: the window's topic has records that no adapter writes.
    """
    form = topic_form(window)
    made = _of_type(window, given, form)
    return made if given.encoding == UTF_8 else _Encoded(made, given.encoding)


def _of_type(window: Window, given: InputFormat | LinesIn, form: str) -> Incoming:
    if given.type == "json":
        return _Objects(window, given, form)
    if isinstance(given, LinesIn):
        return _Rows(window, given, form)
    defaults = CsvLayout(upsert=given.upsert, partial=given.partial).defaults()
    if given.protobuf is not None:
        from espha.adapters.formats.protobuf import ProtobufReader

        read = ProtobufReader(window, given.protobuf, defaults).decode
        return _Messages(window, read, form)
    if given.avro is not None:
        from espha.adapters.formats.avro import AvroReader

        return _Messages(window, AvroReader(window, given.avro, defaults).decode, form)
    return _Rows(window, given, form)


def topic_form(window: Window) -> str:
    """Return how the records of a window's input topic are written: csv or json.

    Raises:
        ConfigError: in another way than adapters write them.
    """
    layout = record_layout(window)
    plain = Layout(format=layout.format, date_format=layout.date_format)
    others = layout.model_copy(update={"upsert": False, "partial": False, "strip_nulls": False})
    if layout.format == "csv" and others != plain:
        raise ConfigError(
            f"window {window.path!r} has a Kafka connector whose records lack columns, or have "
            "another delimiter; adapters write opcode, flags and all fields. Remove addcsvopcode, "
            "addcsvflags, noautogenfield and csvfielddelimiter from that connector"
        )
    return layout.format


def record_writer(window: Window, form: str) -> Write:
    """Return the function that writes an event as a record of a window's input topic."""
    return event_writer(
        window.fields, Style(format="json" if form == "json" else "csv", precision=None)
    )


def within(record: bytes, payload: bytes, where: str, form: str) -> bytes:
    """Return a record, or what says that it is too large for a topic."""
    if len(record) <= ROW_BYTES:
        return record
    reason = f"{where}: the row has {len(record)} bytes, and {ROW_BYTES} at most can be published"
    return not_a_row(reason, payload, form)


def record_of_cells(write: Callable[[list[str]], str], cells: list[str], encoding: str) -> bytes:
    """Return the record of a row.

    Raises:
        BadRecord: a cell is no text in this encoding.
    """
    text = write(cells)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadRecord(wrong_cell(cells, encoding)) from None


class _Encoded:
    """Texts of another encoding than UTF-8."""

    def __init__(self, inner: Incoming, encoding: str) -> None:
        self._inner, self._encoding = inner, encoding

    def records(self, payload: bytes, where: str) -> list[bytes]:
        return self._inner.records(payload_to_utf8(payload, self._encoding), where)


class _Rows:
    """Rows of CSV, one a line."""

    def __init__(self, window: Window, given: InputFormat | LinesIn, form: str) -> None:
        names = CsvColumns.model_fields.keys()
        self._layout = CsvLayout(**{name: getattr(given, name) for name in names})
        self._form, self._encoding = form, given.encoding
        if form == "json":
            raise ConfigError(
                f"window {window.path!r} reads JSON: set the adapter's format to json"
            )
        self._write = canonical_writer(window, self._layout)

    def records(self, payload: bytes, where: str) -> list[bytes]:
        return [
            self._record(cells, reason, line, place)
            for cells, reason, line, place in self._rows(payload, where)
        ]

    def _record(self, cells: list[str], reason: str, line: bytes, where: str) -> bytes:
        if reason:
            return not_a_row(f"{where}: {reason}", line)
        try:
            record = record_of_cells(self._write, cells, self._encoding)
        except BadRecord as error:
            return not_a_row(f"{where}: {error.reason}", line)
        return within(record, line, where, self._form)

    def _rows(self, payload: bytes, where: str) -> Iterator[tuple[list[str], str, bytes, str]]:
        start, number, several = 0, 0, b"\n" in payload.rstrip(b"\r\n")
        while start < len(payload):
            for row in csv_rows(payload[start:] if start else payload, self._layout, final=True):
                end, reason = start + row.size, row.reason
                cut = row.size >= MAX_RECORD and end < len(payload) and payload[end - 1] != _NEWLINE
                if cut:
                    end = payload.find(b"\n", end) + 1 or len(payload)
                    reason = f"a line of {end - start} bytes; a row can have {MAX_RECORD}"
                line = payload[start:end].rstrip(b"\r\n")
                start = end
                if row.content:
                    number += 1
                    place = f"{where}, row {number}" if several else where
                    yield row.content, reason, line, place
                if cut:
                    break


_NEWLINE: Final = 10


class _Objects:
    """Objects of JSON: one, several in an array, or one a line."""

    def __init__(self, window: Window, given: InputFormat | LinesIn, form: str) -> None:
        layout = Layout(
            format="json",
            upsert=given.upsert,
            partial=given.partial,
            date_format=given.date_format,
        )
        self._read = json_reader(window.fields, layout)
        self._write = record_writer(window, form)
        self._form, self._strip, self._encoding = form, given.strip_nulls, given.encoding

    def records(self, payload: bytes, where: str) -> list[bytes]:
        found = list(self._objects(payload.replace(b"\0", b"") if self._strip else payload))
        if len(found) == 1:
            return [self._record(*found[0], where)]
        return [
            self._record(content, line, f"{where}, row {number}")
            for number, (content, line) in enumerate(found, start=1)
        ]

    def _record(self, content: Any, line: bytes, where: str) -> bytes:
        if not isinstance(content, dict):
            return not_a_row(f"{where}: {NOT_AN_OBJECT}", line, self._form)
        try:
            record = self._write(self._read(content)).encode()
        except BadRecord as error:
            return not_a_row(f"{where}: {error.reason}", line, self._form)
        except UnicodeEncodeError:
            return not_a_row(f"{where}: {wrong_bytes(line, self._encoding)}", line, self._form)
        return within(record, line, where, self._form)

    def _objects(self, payload: bytes) -> Iterator[tuple[Any, bytes]]:
        """Yield what should be an object each, with the text that it is from."""
        try:
            yield from _in_arrays(payload)
        except (ValueError, RecursionError):
            for line in payload.splitlines():
                try:
                    yield from _in_arrays(line)
                except (ValueError, RecursionError):
                    yield None, line


class _Messages:
    """Bytes that are one event each."""

    def __init__(self, window: Window, read: Callable[[bytes], Event], form: str) -> None:
        self._read, self._form = read, form
        self._write = record_writer(window, form)

    def records(self, payload: bytes, where: str) -> list[bytes]:
        try:
            record = self._write(self._read(payload)).encode()
        except BadRecord as error:
            return [not_a_row(f"{where}: {error.reason}", payload, self._form)]
        return [within(record, payload, where, self._form)]


def _in_arrays(text: bytes) -> list[tuple[Any, bytes]]:
    """Return what a text of JSON holds, taken out of arrays; event blocks are arrays in arrays."""
    if not text.strip():
        return []
    content = json.loads(decode(text))
    if not isinstance(content, list):
        return [(content, text)]
    found: list[tuple[Any, bytes]] = []
    waiting: list[Any] = [content]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(reversed(one))
        else:
            found.append((one, _text(one)))
    return found


def _text(content: Any) -> bytes:
    try:
        return encode(json.dumps(content, ensure_ascii=False))
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(content).encode()
