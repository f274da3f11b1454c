"""Records of a window's output topic, as the payloads that a target gets."""

from collections.abc import Callable
from typing import Protocol

from espha.adapters.copying import Taken
from espha.adapters.formats.spec import AvroOutput, LinesOut, OutputFormat
from espha.adapters.output_records import Rejected, output_reader, rejected
from espha.connectors.files import record_style
from espha.model import Window
from espha.model.events import BadRecord, Event
from espha.records.layout import Style
from espha.records.text import event_writer


class Outgoing(Protocol):
    """Makes payloads of records."""

    def payload(self, record: Taken) -> bytes | Rejected:
        """Return what a target gets for a record; without a newline at its end.

        Raises:
            ConfigError: the schema does not fit the window's; nothing may be written.
            OSError: what is needed to write it is away; the same call may do better later.
        """
        ...


def outgoing(window: Window, given: OutputFormat | LinesOut) -> Outgoing:
    """Return what makes payloads of the records of a window's topic."""
    style = record_style(window)
    if isinstance(given, OutputFormat) and given.type == "avro":
        from espha.adapters.formats.avro import AvroWriter

        return Converted(window, AvroWriter(window, given.avro or AvroOutput()).encode)
    if isinstance(given, OutputFormat) and given.protobuf is not None:
        from espha.adapters.formats.protobuf import ProtobufWriter

        return Converted(window, ProtobufWriter(window, given.protobuf).encode)
    if given.type == style.format:
        return _AsTheyAre()
    # What is in the record, no less: it has been rounded already.
    whole = Style(format=given.type, date_format=style.date_format, precision=None)
    write = event_writer(window.fields, whole)
    return Converted(window, lambda event: write(event).encode())


class _AsTheyAre:
    """The records themselves."""

    def payload(self, record: Taken) -> bytes | Rejected:
        return record.value


class Converted:
    """Their events, written in another way."""

    def __init__(self, window: Window, write: Callable[[Event], bytes]) -> None:
        """Write the events of a window's records."""
        self._read, self._write = output_reader(window), write

    def payload(self, record: Taken) -> bytes | Rejected:
        """Return the event of a record as it is to be written; see `Outgoing`."""
        ((_, found),) = self._read([record])
        try:
            return found if isinstance(found, Rejected) else self._write(found)
        except BadRecord as error:
            return rejected(record, error.reason)
