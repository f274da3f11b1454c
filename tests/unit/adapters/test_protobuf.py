"""Messages of Protobuf."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken
from espha.adapters.formats.incoming import Incoming, incoming
from espha.adapters.formats.outgoing import Outgoing, outgoing
from espha.adapters.formats.refused import read_not_a_row
from espha.adapters.formats.spec import InputFormat, OutputFormat
from espha.adapters.output_records import Rejected
from espha.connectors.files import record_layout
from espha.model import Window
from espha.model.events import Event
from espha.records.layout import Style
from espha.records.text import event_writer, record_reader
from support.events import EVERY, events
from support.outputs import outbound

WINDOW = outbound()
WIDE = outbound(EVERY)
ALL = """
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
message Other { int32 x = 1; }
message Row {
  optional string opcode = 1; optional string flags = 2;
  optional int64 id = 3; optional sint32 small = 4; optional string name = 5;
  optional double ratio = 6; optional double price = 7;
  google.protobuf.Timestamp at = 8; google.protobuf.Timestamp exact = 9;
  optional bytes raw = 10; repeated int32 few = 11; repeated sfixed64 many = 12;
  repeated double parts = 13;
}
"""


def proto(fields: str) -> str:
    return f'syntax = "proto3"; message Row {{ {fields} }}'


def reader(window: Window, definition: str, message: str = "Row") -> Incoming:
    settings = {"definition": definition, "message": message}
    return incoming(window, InputFormat.model_validate({"type": "protobuf", "protobuf": settings}))


def writer(window: Window, definition: str, message: str = "Row", **more: object) -> Outgoing:
    settings = {"definition": definition, "message": message, **more}
    return outgoing(window, OutputFormat.model_validate({"type": "protobuf", "protobuf": settings}))


@pytest.fixture(scope="module")
def both() -> tuple[Incoming, Outgoing]:
    """A reader and a writer of all types of fields."""
    return reader(WIDE, ALL), writer(WIDE, ALL, "shop.v1.Row")


def sent(write: Outgoing, event: Event) -> bytes | Rejected:
    style = Style(format="csv", precision=None)
    return write.payload(Taken(0, event_writer(WIDE.fields, style)(event).encode()))


@given(event=events(WIDE.fields))
def test_an_event_survives_or_is_set_aside(both: tuple[Incoming, Outgoing], event: Event) -> None:
    """An array of Protobuf has no null, and is none."""
    read, write = both
    arrays: list[Any] = list(event.values[-3:])
    if any(one is None or None in one for one in arrays):
        refused = sent(write, event)
        assert isinstance(refused, Rejected)
        assert "null, which the definition does not take" in refused.reason
    whole = [tuple(part for part in one or () if part is not None) for one in arrays]
    event = event._replace(values=(*event.values[:-3], *whole))
    payload = sent(write, event)
    assert isinstance(payload, bytes)
    (found,) = read.records(payload, "here")
    assert record_reader(WIDE, record_layout(WIDE))(found.decode()) == event


def test_a_field_without_presence_is_never_null() -> None:
    definition = proto("int64 id = 1; string name = 2; double value = 3;")
    made = writer(WINDOW, definition, opcode=False)
    refused = made.payload(Taken(3, b"I,N, 1,,2"))
    assert isinstance(refused, Rejected)
    assert refused.reason == "field name: null, which the definition does not take"
    payload = made.payload(Taken(4, b"I,N, 1,a,0"))
    assert payload == b"\x08\x01\x12\x01a"
    assert reader(WINDOW, definition).records(b"\x08\x01\x12\x01a", "x") == [b"I,N, 1,a,0.0"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("string id = 1; string name = 2; double value = 3;", "field id (int64) is string in it"),
        ("uint64 id = 1; string name = 2; double value = 3;", "field id (int64) is uint64 in it"),
        ("int64 id = 1; repeated string name = 2; double value = 3;", "is repeated string in it"),
        ("int64 id = 1; Row name = 2; double value = 3;", "field name (string) is message in it"),
        ("int64 id = 1; string name = 2;", "it has no field value"),
    ],
)
def test_a_definition_that_does_not_fit_is_refused_with_both(fields: str, why: str) -> None:
    for make in (reader, partial(writer, opcode=False)):
        with pytest.raises(ConfigError, match=r"the window's: id\*:int64,name:string") as refused:
            make(WINDOW, proto(fields))
        assert why in str(refused.value)
        assert proto(fields) in str(refused.value)


def test_a_target_needs_a_field_for_the_opcode() -> None:
    with pytest.raises(ConfigError, match=r"set protobuf\.opcode to false"):
        writer(WINDOW, proto("int64 id = 1; string name = 2; double value = 3;"))


@pytest.mark.parametrize(
    ("definition", "message", "why"),
    [
        ("message {", "Row", "this is no definition of Protobuf: definition.proto:1"),
        ('syntax = "proto3"; import "/etc/passwd";', "Row", "this is no definition of Protobuf"),
        (proto("int64 id = 1;"), "Line", r"no message 'Line' \(there are: Row\)"),
    ],
)
def test_what_is_no_definition_is_refused(definition: str, message: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        reader(WINDOW, definition, message)


def test_what_is_no_message_is_set_aside() -> None:
    definition = proto("int64 id = 1; string name = 2; double value = 3;")
    (record,) = reader(WINDOW, definition).records(b"\x08", "topic x, offset 7")
    found = read_not_a_row(record)
    assert found is not None
    assert found.reason.startswith("topic x, offset 7: not a message of the definition")


def test_settings_belong_to_their_type() -> None:
    for kind in (InputFormat, OutputFormat):
        with pytest.raises(ValidationError, match="protobuf belong together"):
            kind.model_validate({"type": "protobuf"})
