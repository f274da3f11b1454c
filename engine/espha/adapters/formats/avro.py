"""Avro: one record of a schema for each event, with or without a schema registry."""

import io
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import fastavro

from espha.adapters.config import ConfigError
from espha.adapters.formats.codec import FLAGS, OPCODE, Misfit, refusal
from espha.adapters.formats.plans import Plans
from espha.adapters.formats.registry import SchemaRegistry, framed, unframed
from espha.adapters.formats.spec import AvroInput, AvroOutput
from espha.model import Field, Window
from espha.model.events import BadRecord, Event, Value
from espha.model.types import ARRAYS, checker
from espha.records.text import read_flags, read_opcode
from espha.windows.source.spec import SourceWindow

Schema = dict[str, Any]
Convert = Callable[[Any], Any]

_MICROS: Final = {"timestamp-micros": 1, "timestamp-millis": 1_000}
"""Microseconds that one of a logical type is."""
_DAY_S: Final = 86_400
_READS: Final = {
    "int32": {"int"}, "int64": {"int", "long"}, "double": {"int", "float", "double"},
    "money": {"int", "float", "double"}, "string": {"string", "enum"}, "blob": {"bytes", "fixed"},
    "date": {"int", "long"}, "stamp": {"int", "long"},
}  # fmt: skip
"""For each type of a field, the types of Avro that it is read from without loss."""
_WRITES: Final = {
    "int32": {"int", "long", "double"}, "int64": {"long"}, "double": {"double"},
    "money": {"double"}, "string": {"string"}, "blob": {"bytes"}, "date": {"long"},
    "stamp": {"long"},
}  # fmt: skip
"""For each type of a field, the types of Avro that it is written to without loss."""
_MADE: Final[dict[str, Any]] = {
    "int32": "int", "int64": "long", "double": "double", "money": "double", "string": "string",
    "blob": "bytes", "date": {"type": "long", "logicalType": "timestamp-millis"},
    "stamp": {"type": "long", "logicalType": "timestamp-micros"},
}  # fmt: skip


class _Column(NamedTuple):
    """A field of the window in a schema: how its values are read and written."""

    name: str
    convert: Convert
    nullable: bool


def window_schema(window: Window, *, opcode: bool) -> Schema:
    """Return the schema of Avro for a window's events.

    Args:
        window: whose events they are.
        opcode: it begins with opcode and flags.

    Raises:
        ConfigError: a field has a name that Avro does not take.
    """
    own = [{"name": OPCODE, "type": "string"}, {"name": FLAGS, "type": "string"}] if opcode else []
    fields = [{"name": one.name, "type": ["null", _made(one.type)], "default": None} for one in
              window.fields]  # fmt: skip
    name = "".join(letter if letter.isalnum() else "_" for letter in window.name)
    schema = {"type": "record", "name": f"w_{name}", "fields": [*own, *fields]}
    return _parsed(json.dumps(schema))


def _made(type_: str) -> Any:
    if type_ in ARRAYS:
        return {"type": "array", "items": ["null", _MADE[ARRAYS[type_]]]}
    return _MADE[type_]


class AvroReader:
    """Makes events of payloads; see `espha.adapters.formats.codec.Codec`."""

    def __init__(
        self,
        window: Window,
        given: AvroInput,
        default: tuple[str, str],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Check the schema, unless a registry has it: then the first payload waits for that.

        Raises:
            ConfigError: the schema is none, or does not fit the window's.
        """
        self._window, self._default = window, default
        self._registry = SchemaRegistry(given.registry) if given.registry else None
        self._checked = self._registry is None
        self._plans: Plans[_Reading] = Plans(now)
        if self._registry is None:
            self._given = self._plan(given.definition or "")

    def decode(self, payload: bytes) -> Event:
        """Return the event of a payload."""
        if self._registry is None:
            return self._given.read(payload)
        if not self._checked:
            self._check(self._registry)
        found = unframed(payload)
        if found is None:
            raise BadRecord("the record does not begin with the number of a schema")
        identity, rest = found
        plan = self._plans.of(self._registry, identity, lambda one: self._plan(one.of("AVRO")))
        return plan.read(rest)

    def _check(self, registry: SchemaRegistry) -> None:
        latest = registry.latest()
        if latest is None:
            raise ConfigError(f"the schema registry has no subject {registry.subject!r}")
        self._plan(latest.of("AVRO"))
        self._checked = True

    def _plan(self, text: str) -> "_Reading":
        schema = _parsed(text)
        try:
            return _Reading(self._window, schema, self._default)
        except Misfit as misfit:
            raise refusal(self._window, str(misfit), text) from None


class _Reading:
    """Reads payloads of one schema."""

    def __init__(self, window: Window, schema: Schema, default: tuple[str, str]) -> None:
        self._schema, self._default = _plain(schema), default
        given = {one["name"]: one["type"] for one in schema["fields"]}
        auto = isinstance(window, SourceWindow) and window.autogen_key
        absent = [one.name for one in window.fields if one.name not in given]
        wrong = [one.name for one in window.fields if one.name in absent and not (auto and one.key)]
        if wrong:
            raise Misfit(f"it has no field {', '.join(wrong)}")
        self._columns = [
            (one, None if one.name in absent else _reader(one, given[one.name]), checker(one.type))
            for one in window.fields
        ]
        names = {one.name for one in window.fields}
        self._opcode = OPCODE in given and OPCODE not in names
        self._flags = FLAGS in given and FLAGS not in names

    def read(self, payload: bytes) -> Event:
        content = self._content(payload)
        opcode, flags = self._default
        if self._opcode:
            opcode = read_opcode(str(content[OPCODE] or opcode))
        if self._flags:
            flags = read_flags(str(content[FLAGS] or flags))
        values: list[Value] = []
        for field, convert, check in self._columns:
            value = content[field.name] if convert else None
            try:
                values.append(None if value is None or not convert else check(convert(value)))
            except ValueError as error:
                raise BadRecord(f"field {field.name}: {error}") from None
        return Event(opcode, flags, tuple(values))

    def _content(self, payload: bytes) -> dict[str, Any]:
        stream = io.BytesIO(payload)
        try:
            content: Any = fastavro.schemaless_reader(stream, self._schema, None)
        except Exception as error:  # the library raises what it comes upon
            why = f"{type(error).__name__}: {error}".rstrip(": ")
            raise BadRecord(f"not a record of the Avro schema ({why[:200]})") from None
        if stream.tell() != len(payload):
            rest = len(payload) - stream.tell()
            raise BadRecord(f"not a record of the Avro schema: {rest} bytes stand behind it")
        found: dict[str, Any] = content
        return found


class AvroWriter:
    """Makes payloads of events; see `espha.adapters.formats.codec.Codec`."""

    def __init__(self, window: Window, given: AvroOutput) -> None:
        """Check the schema, unless a registry has it: then the first event waits for that.

        Raises:
            ConfigError: the schema is none, or does not fit the window's.
        """
        self._window, self._given = window, given
        self._registry = SchemaRegistry(given.registry) if given.registry else None
        self._identity: int | None = None
        text = given.definition or json.dumps(_bare(window_schema(window, opcode=given.opcode)))
        self._text, self._plan = text, self._checked(text)

    def encode(self, event: Event) -> bytes:
        """Return the payload of an event."""
        if self._registry is None:
            return self._plan.write(event)
        if self._identity is None:
            self._identity = self._registered(self._registry)
        return framed(self._identity, self._plan.write(event))

    def _registered(self, registry: SchemaRegistry) -> int:
        latest = None if self._given.definition else registry.latest()
        if latest is None:
            try:
                return registry.register(self._text, "AVRO")
            except ConfigError as error:
                raise refusal(self._window, str(error), self._text) from None
        self._plan = self._checked(latest.of("AVRO"))
        return latest.id

    def _checked(self, text: str) -> "_Writing":
        try:
            return _Writing(self._window.fields, _parsed(text), opcode=self._given.opcode)
        except Misfit as misfit:
            raise refusal(self._window, str(misfit), text) from None


class _Writing:
    """Writes payloads of one schema."""

    def __init__(self, fields: Sequence[Field], schema: Schema, *, opcode: bool) -> None:
        given = {one["name"]: one for one in schema["fields"]}
        names = {one.name for one in fields}
        absent = [one.name for one in fields if one.name not in given]
        own = [name for name in (OPCODE, FLAGS) if name in given and name not in names]
        if absent:
            raise Misfit(f"it has no field {', '.join(absent)}")
        if opcode and OPCODE not in own:
            raise Misfit("it has no field opcode; set avro.opcode to false to write none")
        open_ = [
            name
            for name, one in given.items()
            if name not in names and name not in own and "default" not in one
            and not _unwrapped(one["type"])[1]
        ]  # fmt: skip
        if open_:
            raise Misfit(f"the window has no field {', '.join(open_)}, which has no default")
        self._schema, self._own = _plain(schema), own
        self._columns = [_writer(one, given[one.name]["type"]) for one in fields]

    def write(self, event: Event) -> bytes:
        content: dict[str, Any] = {
            name: event.opcode if name == OPCODE else event.flags for name in self._own
        }
        for column, value in zip(self._columns, event.values, strict=True):
            if value is None and not column.nullable:
                raise BadRecord(f"field {column.name}: null, which the schema does not take")
            content[column.name] = None if value is None else column.convert(value)
        stream = io.BytesIO()
        try:
            fastavro.schemaless_writer(stream, self._schema, content)
        except Exception as error:  # the library raises what it comes upon
            raise BadRecord(f"the Avro schema does not take it: {str(error)[:200]}") from None
        return stream.getvalue()


def _reader(field: Field, schema: Any) -> Convert:
    inner, _ = _unwrapped(schema)
    kind, logical = _kind(inner)
    if field.type in ARRAYS:
        if kind != "array":
            raise Misfit(f"field {field.name} ({field.type}) is {kind} in it")
        element = _reader(Field(field.name, ARRAYS[field.type]), inner["items"])  # type: ignore[arg-type]
        return lambda value: tuple([None if one is None else element(one) for one in value])
    if kind not in _READS[field.type]:
        raise Misfit(f"field {field.name} ({field.type}) is {logical or kind} in it")
    if field.type in {"date", "stamp"}:
        return _moment_reader(field, logical)
    if logical and logical != "uuid":
        raise Misfit(f"field {field.name} ({field.type}) is {logical} in it")
    return float if field.type in {"double", "money"} else lambda value: value


def _moment_reader(field: Field, logical: str) -> Convert:
    unit = 1_000_000 if field.type == "date" else 1
    if not logical:
        return lambda value: value
    if logical == "date":
        return lambda value: value * _DAY_S * (1 if field.type == "date" else 1_000_000)
    if logical not in _MICROS:
        raise Misfit(f"field {field.name} ({field.type}) is {logical} in it")
    micros = _MICROS[logical]
    return lambda value: value * micros // unit


def _writer(field: Field, schema: Any) -> _Column:
    inner, nullable = _unwrapped(schema)
    kind, logical = _kind(inner)
    if field.type in ARRAYS:
        if kind != "array":
            raise Misfit(f"field {field.name} ({field.type}) is {kind} in it")
        element = _writer(Field(field.name, ARRAYS[field.type]), inner["items"])  # type: ignore[arg-type]
        return _Column(
            field.name,
            lambda value: [None if one is None else element.convert(one) for one in value],
            nullable,
        )
    fits = kind in _WRITES[field.type]
    if field.type in {"date", "stamp"}:
        wanted = {"", *_MICROS} if field.type == "date" else {"", "timestamp-micros"}
        fits = fits and logical in wanted
    elif logical:
        fits = False
    if not fits:
        raise Misfit(f"field {field.name} ({field.type}) is {logical or kind} in it")
    if field.type == "date" and logical:
        ticks = 1_000_000 // _MICROS[logical]
        return _Column(field.name, lambda value: value * ticks, nullable)
    return _Column(field.name, float if kind == "double" else lambda value: value, nullable)


def _unwrapped(schema: Any) -> tuple[Any, bool]:
    """Return what a schema is beside null, and whether it can be null."""
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        nullable = len(others) < len(schema)
        return (others[0] if len(others) == 1 else {"type": "union"}), nullable
    return schema, schema == "null"


def _kind(schema: Any) -> tuple[str, str]:
    """Return the type of a schema, and its logical type."""
    if isinstance(schema, dict):
        inner = schema.get("type")
        if isinstance(inner, dict):
            return _kind(inner)
        return str(inner), str(schema.get("logicalType", ""))
    return str(schema), ""


def _parsed(text: str) -> Schema:
    try:
        schema = fastavro.parse_schema(json.loads(text))
    except Exception as error:  # the library raises what it comes upon
        raise ConfigError(f"this is no schema of Avro ({error}): {text[:2000]}") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ConfigError(f"the schema of Avro is not that of a record: {text[:2000]}")
    return schema


def _plain(schema: Any) -> Any:
    """Return a schema without logical types: values are converted here, without loss."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if isinstance(schema, dict):
        return {
            name: one if name in {"default", "symbols"} else _plain(one)
            for name, one in schema.items()
            if name != "logicalType"
        }
    return schema


def _bare(schema: Schema) -> Schema:
    """Return a schema without what the library has noted in it."""
    return {name: one for name, one in schema.items() if not name.startswith("__")}
