"""Messages of Protobuf."""

import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken
from espha.adapters.formats.incoming import Incoming, incoming
from espha.adapters.formats.outgoing import Outgoing, outgoing
from espha.adapters.formats.protobuf import (
    ProtobufReader,
    compiled,
    read_indexes,
    written_indexes,
)
from espha.adapters.formats.refused import read_not_a_row
from espha.adapters.formats.spec import InputFormat, OutputFormat, ProtobufInput
from espha.adapters.output_records import Rejected
from espha.connectors.files import record_layout
from espha.model import Window
from espha.model.events import BadRecord, Event
from espha.records.layout import Style
from espha.records.text import event_writer, record_reader
from support.events import EVERY, events
from support.outputs import outbound
from support.registry import Registry, schema_registry

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


TIMES = 'syntax = "proto3"; package shop; message Name { optional string text = 1; }'
NESTED = """
syntax = "proto3";
package shop;
import "shop/names.proto";
message First { Name name = 1; }
message Second {
  message Inner { int32 x = 1; }
  message Row {
    string opcode = 1; optional int64 id = 2; optional string name = 3; optional double value = 4;
  }
}
"""
PLAIN = proto("optional int64 id = 1; optional string name = 2; optional double value = 3;")
NEWER = proto(
    "optional int64 id = 1; optional string name = 2; optional double value = 3; bool more = 4;"
)
WITH_OPCODE = proto(
    "string opcode = 1; optional int64 id = 2; optional string name = 3; optional double value = 4;"
)


def of_registry(known: Registry, message: str | None = None) -> dict[str, Any]:
    told = {"registry": {"url": known.url, "subject": "rows-value"}}
    named = {} if message is None else {"message": message}
    return {"type": "protobuf", "protobuf": {**told, **named}}


def from_registry(known: Registry, message: str | None = None) -> Incoming:
    return incoming(WINDOW, InputFormat.model_validate(of_registry(known, message)))


def nested(known: Registry) -> int:
    """Register a definition that imports another one."""
    known.add("names", TIMES, "PROTOBUF")
    reference = {"name": "shop/names.proto", "subject": "names", "version": 1}
    return known.add("rows-value", NESTED, "PROTOBUF", references=[reference])


def test_a_message_says_its_schema_and_which_message_of_it_it_is() -> None:
    with schema_registry() as known:
        number = nested(known)
        settings = of_registry(known, "Second.Row")
        target = outgoing(WINDOW, OutputFormat.model_validate(settings))
        payload = target.payload(Taken(0, b"U,N, 7,a,0.5"))
        assert isinstance(payload, bytes)
        # Two numbers follow: the second message, and the second one in it; each one zigzag.
        assert payload[:8] == b"\0" + number.to_bytes(4, "big") + b"\x04\x02\x02"
        assert from_registry(known, "Second.Row").records(payload, "x") == [b"U,N, 7,a,0.5"]


def test_the_first_message_is_a_single_zero() -> None:
    with schema_registry() as known:
        number = known.add("rows-value", PLAIN, "PROTOBUF")
        plain = compiled(PLAIN)
        assert written_indexes(plain.places(plain.message("Row"))) == b"\0"
        source = from_registry(known)
        head = b"\0" + number.to_bytes(4, "big")
        assert source.records(head + b"\0\x08\x01", "x") == [b"I,N, 1,,"]
        # Some clients write it as what it is: one number, a zero.
        assert source.records(head + b"\x02\0\x08\x01", "x") == [b"I,N, 1,,"]


def test_a_target_registers_its_definition() -> None:
    with schema_registry() as known:
        settings = of_registry(known)
        settings["protobuf"] |= {"definition": WITH_OPCODE, "message": "Row"}
        target = outgoing(WINDOW, OutputFormat.model_validate(settings))
        assert known.schemas == {}
        payload = target.payload(Taken(0, b"D,N, 7,,"))
        assert isinstance(payload, bytes)
        assert known.schemas == {1: {"schema": WITH_OPCODE, "schemaType": "PROTOBUF"}}
        assert from_registry(known).records(payload, "x") == [b"D,N, 7,,"]
        known.refuses = True
        settings["protobuf"]["registry"]["subject"] = "others"
        refused = outgoing(WINDOW, OutputFormat.model_validate(settings))
        with pytest.raises(ConfigError, match="incompatible with an earlier schema"):
            refused.payload(Taken(0, b"D,N, 7,,"))


def test_schemas_may_change_and_those_that_do_not_fit_are_set_aside() -> None:
    with schema_registry() as known:
        wrong = known.add("rows-value", proto("string id = 1;"), "PROTOBUF")
        number = known.add("rows-value", PLAIN, "PROTOBUF")
        source = from_registry(known)

        def reason(payload: bytes) -> str:
            (record,) = source.records(payload, "topic x, offset 7")
            found = read_not_a_row(record)
            assert found is not None
            return found.reason

        good = b"\0" + number.to_bytes(4, "big")
        assert "schema 1: the schema does not fit" in reason(
            b"\0" + wrong.to_bytes(4, "big") + b"\0"
        )
        assert "the schema registry has no schema 99" in reason(b"\0\0\0\0\x63\0")
        assert "does not begin with the number of a schema" in reason(b"\x08\x01")
        assert "has no message at [7]" in reason(good + b"\x02\x0e")
        for torn in (b"", b"\x02", b"\x01", b"\xff\xff\xff\xff\xff", b"\x7e"):
            assert "does not say which one" in reason(good + torn)
        assert source.records(good + b"\0\x08\x01", "x") == [b"I,N, 1,,"]


def test_what_a_registry_does_not_give_for_a_moment_is_asked_for_again() -> None:
    """A schema, one that it refers to, and an answer to who asks for that."""
    now = 0.0
    with schema_registry() as known:
        known.add("rows-value", PLAIN, "PROTOBUF")
        given = ProtobufInput.model_validate(of_registry(known)["protobuf"])
        made = ProtobufReader(WINDOW, given, ("I", "N"), lambda: now)
        payload = b"\0\0\0\0\x02\x04\x02\x02\x10\x01"
        with pytest.raises(BadRecord, match="the schema registry has no schema 2"):
            made.decode(payload)
        reference = {"name": "shop/names.proto", "subject": "names", "version": 1}
        known.add("rows-value", NESTED, "PROTOBUF", references=[reference])
        now = 11
        with pytest.raises(BadRecord, match="has no version 1 of subject 'names'"):
            made.decode(payload)
        known.add("names", TIMES, "PROTOBUF")
        known.closed = {"/subjects/names/versions/1"}
        now = 22
        with pytest.raises(BadRecord, match="answers 403 to /subjects/names/versions/1"):
            made.decode(payload)
        known.closed = set()
        asked = len(known.asked)
        now = 23
        with pytest.raises(BadRecord, match="answers 403"):
            made.decode(payload)
        assert len(known.asked) == asked
        now = 33
        assert made.decode(payload).values == (1, None, None)


def killed(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.CompletedProcess(command, -9, "", "")


def late(command: list[str], **_: object) -> NoReturn:
    raise subprocess.TimeoutExpired(command, 60)


@pytest.mark.parametrize("failing", [killed, late])
def test_a_compiler_that_has_no_memory_or_time_is_started_again(
    monkeypatch: pytest.MonkeyPatch, failing: Callable[..., object]
) -> None:
    now = 0.0
    with schema_registry() as known:
        known.add("rows-value", PLAIN, "PROTOBUF")
        given = ProtobufInput.model_validate(of_registry(known)["protobuf"])
        made = ProtobufReader(WINDOW, given, ("I", "N"), lambda: now)
        payload = b"\0\0\0\0\x01\0\x08\x01"
        assert made.decode(payload).values == (1, None, None)
        known.add("rows-value", NEWER, "PROTOBUF")
        payload = b"\0\0\0\0\x02\0\x08\x01"
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "run", failing)
            with pytest.raises(BadRecord, match="schema 2: the compiler of Protobuf"):
                made.decode(payload)
        now = 11
        assert made.decode(payload).values == (1, None, None)


def test_what_is_no_answer_of_a_registry_says_nothing_of_a_schema() -> None:
    """As of a proxy before it, to whoever asks for a schema that another one refers to."""
    now = 0.0
    with schema_registry() as known:
        known.add("rows-value", PLAIN, "PROTOBUF")
        number = nested(known)
        given = ProtobufInput.model_validate(of_registry(known, "Second.Row")["protobuf"])
        made = ProtobufReader(WINDOW, given, ("I", "N"), lambda: now)
        payload = b"\0" + number.to_bytes(4, "big") + b"\x04\x02\x02\x10\x01"
        made.decode(payload)
        known.schemas[number + 1] = {**known.schemas[number]}
        names = known.schemas.pop(known.subjects["names"][0])
        known.schemas[known.subjects["names"][0]] = {"welcome": "to this hotel"}
        payload = b"\0" + (number + 1).to_bytes(4, "big") + b"\x04\x02\x02\x10\x01"
        with pytest.raises(BadRecord, match="this is no schema registry"):
            made.decode(payload)
        known.schemas[known.subjects["names"][0]] = names
        now = 11
        assert made.decode(payload).values == (1, None, None)


def test_a_registry_that_is_away_is_waited_for() -> None:
    with schema_registry() as known:
        nested(known)
        source = from_registry(known, "Second.Row")
        known.trouble = 503
        with pytest.raises(OSError, match="is away: it answers 503"):
            source.records(b"\0\0\0\0\x02\x04\x02\x02", "x")
        known.trouble = 0
        assert source.records(b"\0\0\0\0\x02\x04\x02\x02\x10\x01", "x") == [b"I,N, 1,,"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("../names.proto", "cannot be imported"),
        ("/etc/names.proto", "cannot be imported"),
        ("definition.proto", "imports a file called definition.proto"),
        ("missing", "has no version 5 of subject 'names'"),
    ],
)
def test_what_a_schema_refers_to_must_be_there_and_lead_nowhere_else(
    name: str, sentence: str
) -> None:
    with schema_registry() as known:
        known.add("names", TIMES, "PROTOBUF")
        version = 5 if name == "missing" else 1
        reference = {"name": name, "subject": "names", "version": version}
        known.add("rows-value", PLAIN, "PROTOBUF", references=[reference])
        with pytest.raises(ConfigError, match=sentence):
            from_registry(known).records(b"\0\0\0\0\x02\0", "x")


def test_a_registry_or_a_definition_is_needed_and_a_definition_names_its_message() -> None:
    registry = {"url": "http://r", "subject": "s"}
    for told in ({}, {"definition": PLAIN}, {"definition": PLAIN, "message": "Row",
                 "registry": registry}):  # fmt: skip
        with pytest.raises(ValidationError):
            InputFormat.model_validate({"type": "protobuf", "protobuf": told})
    with schema_registry() as known:
        target = outgoing(WINDOW, OutputFormat.model_validate(of_registry(known)))
        with pytest.raises(ConfigError, match="has no subject 'rows-value': give a definition"):
            target.payload(Taken(0, b"I,N, 7,,"))
        known.add("rows-value", '{"type": "record", "name": "r", "fields": []}')
        with pytest.raises(ConfigError, match="is AVRO, not PROTOBUF"):
            from_registry(known).records(b"\0\0\0\0\x01\0", "x")


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=5))
def test_places_of_messages_are_read_as_they_are_written(places: list[int]) -> None:
    text = written_indexes(places)
    assert read_indexes(text + b"rest") == (tuple(places), len(text))
