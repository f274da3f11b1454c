"""Records of Avro, with and without a schema registry."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from pydantic import ValidationError

from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken
from espha.adapters.formats.avro import AvroReader, window_schema
from espha.adapters.formats.incoming import Incoming, incoming
from espha.adapters.formats.outgoing import Outgoing, outgoing
from espha.adapters.formats.refused import read_not_a_row
from espha.adapters.formats.registry import framed
from espha.adapters.formats.spec import AvroInput, InputFormat, OutputFormat
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
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"]},
    {"name": "value", "type": ["null", "double"]},
]


def schema(*fields: dict[str, Any], **more: Any) -> str:
    changed = [{**one, "type": more.pop(str(one["name"]), one["type"])} for one in FIELDS]
    return json.dumps({"type": "record", "name": "r", "fields": [*changed, *fields]})


def written(text: str, **content: object) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(text)), content)
    return stream.getvalue()


def read(payload: bytes, text: str) -> object:
    return fastavro.schemaless_reader(
        io.BytesIO(payload), fastavro.parse_schema(json.loads(text)), None
    )


def reader(window: Window = WINDOW, **avro: object) -> Incoming:
    return incoming(window, InputFormat.model_validate({"type": "avro", "avro": avro}))


def writer(window: Window = WINDOW, **avro: object) -> Outgoing:
    return outgoing(window, OutputFormat.model_validate({"type": "avro", "avro": avro}))


def reason(record: bytes) -> str:
    found = read_not_a_row(record)
    assert found is not None, record
    return found.reason


@pytest.fixture
def registry() -> Iterator[Registry]:
    """An empty one."""
    with schema_registry() as found:
        yield found


@given(event=events(WIDE.fields))
def test_an_event_survives(event: Event) -> None:
    text = json.dumps(window_schema(WIDE, opcode=True))
    record = event_writer(WIDE.fields, Style(format="csv", precision=None))(event).encode()
    payload = writer(WIDE).payload(Taken(0, record))
    if isinstance(payload, Rejected):  # a date whose milliseconds are no long is set aside
        assert "Avro schema does not take it" in payload.reason
        return
    (found,) = reader(WIDE, definition=text).records(payload, "here")
    assert record_reader(WIDE, record_layout(WIDE))(found.decode()) == event


def test_others_read_moments_as_moments() -> None:
    window = outbound("id*:int64,at:date,exact:stamp")
    text = json.dumps(window_schema(window, opcode=False))
    payload = writer(window, opcode=False).payload(Taken(0, b"D,N, 1,60,7"))
    assert isinstance(payload, bytes)
    found: Any = read(payload, text)
    assert (found["at"].isoformat(), found["exact"].isoformat()) == (
        "1970-01-01T00:01:00+00:00",
        "1970-01-01T00:00:00.000007+00:00",
    )


@pytest.mark.parametrize(
    ("kind", "logical", "value", "expected"),
    [
        ("long", "timestamp-millis", -1_001, "-2,-1001000"),
        ("long", "timestamp-micros", 5_000_001, "5,5000001"),
        ("int", "date", 2, "172800,172800000000"),
        ("long", "", 9, "9,9"),
    ],
)
def test_moments_of_others(kind: str, logical: str, value: int, expected: str) -> None:
    window = outbound("id*:int64,at:date,exact:stamp")
    type_ = {"type": kind, "logicalType": logical} if logical else kind
    plain = {"type": "record", "name": "r", "fields": [
        {"name": name, "type": kind} for name in ("id", "at", "exact")
    ]}  # fmt: skip
    fields = [{"name": name, "type": type_} for name in ("at", "exact")]
    text = json.dumps({**plain, "fields": [{"name": "id", "type": kind}, *fields]})
    payload = written(json.dumps(plain), id=1, at=value, exact=value)
    assert reader(window, definition=text).records(payload, "here") == [
        b"I,N, 1," + expected.encode()
    ]


def test_further_fields_are_left_out_and_opcodes_are_used() -> None:
    extra = [{"name": "opcode", "type": "string"}, {"name": "other", "type": "bytes"}]
    text = schema(*extra, value="int")
    payload = written(text, id=1, name=None, value=3, opcode="delete", other=b"x")
    assert reader(definition=text).records(payload, "here") == [b"D,N, 1,,3.0"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (schema(id="string"), "field id (int64) is string in it"),
        (schema(value=["null", "long"]), "field value (double) is long in it"),
        (schema(name=["int", "string"]), "field name (string) is union in it"),
        (schema(id={"type": "long", "logicalType": "date"}), "field id (int64) is date in it"),
        (json.dumps({"type": "record", "name": "r", "fields": FIELDS[:2]}), "has no field value"),
    ],
)  # fmt: skip
def test_a_schema_that_does_not_fit_is_refused_with_both(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        reader(definition=text)
    sentence = str(refused.value)
    assert why in sentence
    assert "the window's: id*:int64,name:string,value:double" in sentence
    assert text in sentence


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (schema(id="int"), "field id (int64) is int in it"),
        (schema(value="float"), "field value (double) is float in it"),
        (schema({"name": "more", "type": "int"}), "the window has no field more"),
        (json.dumps({"type": "record", "name": "r", "fields": FIELDS[1:]}), "it has no field id"),
    ],
)
def test_a_schema_that_a_target_cannot_fill_is_refused_with_both(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"the window's: id\*:int64,name:string") as refused:
        writer(definition=text, opcode=False)
    assert why in str(refused.value)
    with pytest.raises(ConfigError, match=r"it has no field opcode; set avro\.opcode to false"):
        writer(definition=schema())


@pytest.mark.parametrize("text", ["", "{", '"int"', "[]", '{"type": "record"}', "7"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises((ConfigError, ValidationError), match=r"schema|definition"):
        reader(definition=text)


def test_what_is_no_record_is_set_aside() -> None:
    made = reader(definition=schema())
    for payload in (b"", b"\x02", b"\x02\x02\xff\xff\xff\xff\x0f", written(schema(), id=1) + b"x"):
        (record,) = made.records(payload, "topic x, offset 7")
        assert reason(record).startswith("topic x, offset 7: not a record of the Avro schema")


def test_a_null_that_the_schema_does_not_take_is_set_aside() -> None:
    made = writer(definition=schema(name="string"), opcode=False)
    found = made.payload(Taken(3, b"I,N, 1,,2"))
    assert isinstance(found, Rejected)
    assert found.reason == "field name: null, which the schema does not take"


def test_a_target_registers_the_windows_schema(registry: Registry) -> None:
    made = writer(registry={"url": registry.url, "subject": "out-value"})
    payload = made.payload(Taken(0, b"U,N, 1,a,2"))
    assert isinstance(payload, bytes)
    assert payload[:5] == b"\0\0\0\0\1"
    assert made.payload(Taken(1, b"U,N, 1,a,2")) == payload
    assert len([one for one in registry.asked if one[0] == "POST"]) == 1
    content = {"opcode": "U", "flags": "N", "id": 1, "name": "a", "value": 2.0}
    assert read(payload[5:], registry.schemas[1]["schema"]) == content
    # A source with the same subject reads it, and so does a target that comes later.
    given = {"url": registry.url, "subject": "out-value"}
    assert reader(registry=given).records(payload, "here") == [b"U,N, 1,a,2.0"]
    assert writer(registry=given).payload(Taken(0, b"U,N, 1,a,2")) == payload
    assert list(registry.schemas) == [1]


def test_a_schema_that_the_registry_refuses_ends_it_with_both(registry: Registry) -> None:
    registry.refuses = True
    made = writer(registry={"url": registry.url, "subject": "out"})
    with pytest.raises(ConfigError, match="incompatible with an earlier schema") as refused:
        made.payload(Taken(0, b"U,N, 1,a,2"))
    assert "the window's: id*:int64" in str(refused.value)


def test_a_subject_that_does_not_fit_ends_it_before_anything_is_published(
    registry: Registry,
) -> None:
    registry.add("in", schema(id="string"))
    with pytest.raises(ConfigError, match=r"field id \(int64\) is string in it"):
        reader(registry={"url": registry.url, "subject": "in"}).records(b"\0", "here")
    with pytest.raises(ConfigError, match="has no subject 'other'"):
        reader(registry={"url": registry.url, "subject": "other"}).records(b"\0", "here")


def test_schemas_change_and_each_record_has_its_own(registry: Registry) -> None:
    old = schema(value="float")
    new = schema({"name": "more", "type": "int"})
    numbers = [registry.add("in", text) for text in (old, new, schema(id="string"))]
    registry.add("in", "message M {}", "PROTOBUF")
    registry.add("in", schema(), references=[{"name": "x"}])
    registry.subjects["in"] = numbers[:2]
    made = reader(registry={"url": registry.url, "subject": "in"})
    assert made.records(framed(1, written(old, id=1, value=0.5)), "here") == [b"I,N, 1,,0.5"]
    assert made.records(framed(2, written(new, id=2, more=3)), "here") == [b"I,N, 2,,"]
    for number, why in [
        (3, "schema 3: the schema does not fit window 'cq/s': field id (int64) is string in it"),
        (4, "schema 4: schema 4 of the registry is PROTOBUF, not AVRO"),
        (5, "schema 5 of the registry refers to others"),
        (6, "the schema registry has no schema 6"),
    ]:
        (record,) = made.records(framed(number, b"x"), "here")
        assert why in reason(record)
    (record,) = made.records(b"I,N,1,a,2", "here")
    assert reason(record) == "here: the record does not begin with the number of a schema"


def test_a_schema_that_the_registry_gets_to_know_is_asked_for_again(registry: Registry) -> None:
    """It is new, and the node of the registry that was asked had not heard of it."""
    registry.add("in", schema())
    now = 0.0
    given = {"registry": {"url": registry.url, "subject": "in"}}
    made = AvroReader(WINDOW, AvroInput.model_validate(given), ("I", "N"), lambda: now)
    payload = framed(2, written(schema(), id=1))
    for _ in range(3):
        with pytest.raises(BadRecord, match="the schema registry has no schema 2"):
            made.decode(payload)
    assert [path for _, path, _ in registry.asked].count("/schemas/ids/2") == 1
    registry.add("in", schema())
    now = 11
    assert made.decode(payload).values == (1, None, None)
    registry.trouble = 503
    now = 100
    assert made.decode(payload).values == (1, None, None)


def test_a_schema_that_does_not_fit_is_asked_for_once(registry: Registry) -> None:
    registry.add("wrong", schema(id="string"))
    registry.add("in", schema())
    now = 0.0
    given = {"registry": {"url": registry.url, "subject": "in"}}
    made = AvroReader(WINDOW, AvroInput.model_validate(given), ("I", "N"), lambda: now)
    for later in (0, 100):
        now = later
        with pytest.raises(BadRecord, match="schema 1: the schema does not fit"):
            made.decode(framed(1, b"x"))
    assert [path for _, path, _ in registry.asked].count("/schemas/ids/1") == 1


def test_a_registry_that_is_away_is_waited_for(registry: Registry) -> None:
    registry.add("in", schema())
    made = reader(registry={"url": registry.url, "subject": "in"})
    payload = framed(1, written(schema(), id=1))
    for trouble in (500, 503, 429):
        registry.trouble = trouble
        with pytest.raises(OSError, match=f"schema registry .* is away: it answers {trouble}"):
            made.records(payload, "here")
    registry.trouble = 0
    assert made.records(payload, "here") == [b"I,N, 1,,"]
    registry.trouble = 503  # what is known needs no registry
    assert made.records(payload, "here") == [b"I,N, 1,,"]
    with pytest.raises(OSError, match="is away"):
        made.records(framed(2, b""), "here")


def test_a_registry_that_answers_byte_by_byte_is_away(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("espha.adapters.formats.registry._ANSWER_S", 0.2)
    registry.add("in", schema())
    registry.pause = 0.05
    made = reader(registry={"url": registry.url, "subject": "in"})
    with pytest.raises(OSError, match="is away: the answer comes too slowly"):
        made.records(framed(1, written(schema(), id=1)), "here")
    registry.pause = 0
    assert made.records(framed(1, written(schema(), id=1)), "here") == [b"I,N, 1,,"]


def test_nobody_listens() -> None:
    made = writer(registry={"url": "http://127.0.0.1:1", "subject": "x"})
    with pytest.raises(OSError, match=r"registry http://127\.0\.0\.1:1 is away: ") as refused:
        made.payload(Taken(0, b"U,N, 1,a,2"))
    assert "object at 0x" not in str(refused.value)
    assert refused.value.strerror


@pytest.mark.parametrize("in_file", [False, True])
def test_user_and_password_are_sent_and_not_said(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_file: bool
) -> None:
    name, file = "SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO", tmp_path / "user"
    file.write_text("me:secret\n")
    monkeypatch.setenv(*((f"{name}_FILE", str(file)) if in_file else (name, "me:secret")))
    registry.trouble = 401
    made = reader(registry={"url": registry.url, "subject": "in"})
    with pytest.raises(ConfigError, match="answers 401") as refused:
        made.records(b"", "here")
    assert registry.asked[0][2] == "Basic bWU6c2VjcmV0"
    assert "secret" not in str(refused.value)


def test_user_and_password_may_be_any_text(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO", "me:5€")
    registry.add("in", schema())
    made = reader(registry={"url": registry.url, "subject": "in"})
    made.records(framed(1, written(schema(), id=1)), "here")
    assert base64.b64decode(registry.asked[0][2].removeprefix("Basic ")).decode() == "me:5€"


@pytest.mark.parametrize("url", ["ftp://x", "http://me:secret@x", "http://x?a=b", "x:8081"])
def test_addresses_have_no_passwords(url: str) -> None:
    with pytest.raises(ValidationError):
        reader(registry={"url": url, "subject": "x"})


def test_settings_belong_to_their_type() -> None:
    for wrong in ({"type": "avro"}, {"type": "csv", "avro": {"definition": "x"}}):
        with pytest.raises(ValidationError, match="belong together"):
            InputFormat.model_validate(wrong)
    with pytest.raises(ValidationError, match="are for type avro"):
        OutputFormat.model_validate({"avro": {}})
