"""Protobuf: one message of a definition for each event, with or without a schema registry.

With a registry, a message begins with the number of its schema, as records of Avro do; then it says
which message of the schema it is: how many numbers follow, and the place at each level. A single
zero is the first message of the file.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Error, Message

from espha.adapters.config import ConfigError
from espha.adapters.formats.codec import FLAGS, OPCODE, Misfit, refusal
from espha.adapters.formats.plans import Plans
from espha.adapters.formats.registry import (
    NotGivenError,
    Registered,
    SchemaRegistry,
    framed,
    unframed,
)
from espha.adapters.formats.spec import ProtobufInput, ProtobufOutput
from espha.model import Field, Window
from espha.model.events import BadRecord, Event, Value
from espha.model.types import ARRAYS, checker
from espha.records.text import read_flags, read_opcode
from espha.windows.source.spec import SourceWindow

Convert = Callable[[Any], Any]

_FILE: Final = "definition.proto"
_KIND: Final = "PROTOBUF"
_IMPORTED: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""Names of files that a definition of a registry can import."""
_DEEPEST: Final = 32
_COMPILE_S: Final = 60
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_INT32: Final = {"int32", "sint32", "sfixed32"}
_INT64: Final = {"int64", "sint64", "sfixed64"}
_READS: Final = {
    "int32": _INT32, "int64": {*_INT32, *_INT64, "uint32", "fixed32"},
    "double": {"double", "float", *_INT32}, "money": {"double", "float", *_INT32},
    "string": {"string"}, "blob": {"bytes"}, "date": {*_INT64, _TIMESTAMP},
    "stamp": {*_INT64, _TIMESTAMP},
}  # fmt: skip
"""For each type of a field, the types of Protobuf that it is read from without loss."""
_WRITES: Final = {
    "int32": {*_INT32, *_INT64, "double"}, "int64": _INT64, "double": {"double"},
    "money": {"double"}, "string": {"string"}, "blob": {"bytes"}, "date": {*_INT64, _TIMESTAMP},
    "stamp": {*_INT64, _TIMESTAMP},
}  # fmt: skip
"""For each type of a field, the types of Protobuf that it is written to without loss."""
_KINDS: Final = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


class _Column(NamedTuple):
    """A field of the window in a message: how it is read or written."""

    field: Field
    part: FieldDescriptor | None
    convert: Convert

    @property
    def check(self) -> Callable[[object], Value]:
        """What makes a value of the field's type."""
        return checker(self.field.type)


class ProtobufReader:
    """Makes events of payloads; see `espha.adapters.formats.codec.Codec`."""

    def __init__(
        self,
        window: Window,
        given: ProtobufInput,
        default: tuple[str, str],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Compile the definition, unless a registry has it: then the first payload waits for that.

        Raises:
            ConfigError: it is none, or does not fit the window's schema.
        """
        self._window, self._default, self._message = window, default, given.message
        self._registry = SchemaRegistry(given.registry) if given.registry else None
        self._checked = self._registry is None
        self._plans: Plans[_Reading] = Plans(now)
        if given.definition is not None:
            definition = compiled(given.definition)
            self._given = self._plan(definition, definition.message(given.message or ""))

    def decode(self, payload: bytes) -> Event:
        """Return the event of a payload."""
        registry = self._registry
        if registry is None:
            return self._given.read(payload)
        if not self._checked:
            self._check(registry)
        found = unframed(payload)
        if found is None:
            raise BadRecord("the message does not begin with the number of a schema")
        identity, rest = found
        places, start = read_indexes(rest)

        def make(schema: Registered) -> _Reading:
            definition = _registered(registry, schema)
            return self._plan(definition, definition.at(places))

        return self._plans.of(registry, identity, make, places).read(rest[start:])

    def _check(self, registry: SchemaRegistry) -> None:
        latest = registry.latest()
        if latest is None:
            raise ConfigError(f"the schema registry has no subject {registry.subject!r}")
        definition = _registered(registry, latest)
        self._plan(definition, definition.chosen(self._message))
        self._checked = True

    def _plan(self, definition: "Definition", message: Descriptor) -> "_Reading":
        try:
            return _Reading(self._window, message, self._default)
        except Misfit as misfit:
            raise refusal(self._window, str(misfit), definition.text) from None


class _Reading:
    """Reads payloads of one message."""

    def __init__(self, window: Window, message: Descriptor, default: tuple[str, str]) -> None:
        self._made, self._default = message_factory.GetMessageClass(message), default
        auto = isinstance(window, SourceWindow) and window.autogen_key
        _all_there(window.fields, message, lambda field: auto and field.key)
        columns = [_column(one, message, _READS, _read) for one in window.fields]
        self._columns = [(one, one.check) for one in columns]
        self._own = _own(window.fields, message)

    def read(self, payload: bytes) -> Event:
        found: Any = self._made()
        try:
            found.ParseFromString(payload)
        except Error as error:
            raise BadRecord(f"not a message of the definition ({error})") from None
        opcode, flags = self._default
        if OPCODE in self._own:
            opcode = read_opcode(found.opcode or opcode)
        if FLAGS in self._own:
            flags = read_flags(found.flags or flags)
        return Event(opcode, flags, tuple([self._value(found, *one) for one in self._columns]))

    def _value(self, found: Any, column: _Column, check: Callable[[object], Value]) -> Value:
        field, part, convert = column
        if part is None or (part.has_presence and not found.HasField(field.name)):
            return None
        try:
            return check(convert(getattr(found, field.name)))
        except ValueError as error:
            raise BadRecord(f"field {field.name}: {error}") from None


class ProtobufWriter:
    """Makes payloads of events; see `espha.adapters.formats.codec.Codec`."""

    def __init__(self, window: Window, given: ProtobufOutput) -> None:
        """Compile the definition, unless a registry has it: then the first event waits for that.

        Raises:
            ConfigError: it is none, or does not fit the window's schema.
        """
        self._window, self._given = window, given
        self._registry = SchemaRegistry(given.registry) if given.registry else None
        self._head: bytes | None = None if self._registry else b""
        if given.definition is not None:
            definition = compiled(given.definition)
            message = definition.message(given.message or "")
            self._places = definition.places(message)
            self._plan = self._checked(definition, message)

    def encode(self, event: Event) -> bytes:
        """Return the payload of an event."""
        if self._registry is not None and self._head is None:
            self._head = self._begin(self._registry)
        return (self._head or b"") + self._plan.write(event)

    def _begin(self, registry: SchemaRegistry) -> bytes:
        """Have the registry know the definition, or take its own; return how messages begin."""
        if self._given.definition is not None:
            try:
                identity = registry.register(self._given.definition, _KIND)
            except ConfigError as error:
                raise refusal(self._window, str(error), self._given.definition) from None
            return framed(identity, written_indexes(self._places))
        latest = registry.latest()
        if latest is None:
            raise ConfigError(
                f"the schema registry has no subject {registry.subject!r}: give a definition, "
                "which is then registered"
            )
        definition = _registered(registry, latest)
        message = definition.chosen(self._given.message)
        self._plan = self._checked(definition, message)
        return framed(latest.id, written_indexes(definition.places(message)))

    def _checked(self, definition: "Definition", message: Descriptor) -> "_Writing":
        try:
            return _Writing(self._window.fields, message, opcode=self._given.opcode)
        except Misfit as misfit:
            raise refusal(self._window, str(misfit), definition.text) from None


class _Writing:
    """Writes payloads of one message."""

    def __init__(self, fields: Sequence[Field], message: Descriptor, *, opcode: bool) -> None:
        self._made = message_factory.GetMessageClass(message)
        self._own = _own(fields, message)
        _all_there(fields, message, lambda _: False)
        if opcode and OPCODE not in self._own:
            raise Misfit("it has no field opcode; set protobuf.opcode to false to write none")
        self._columns = [_column(one, message, _WRITES, _write) for one in fields]

    def write(self, event: Event) -> bytes:
        made: Any = self._made()
        if OPCODE in self._own:
            made.opcode = event.opcode
        if FLAGS in self._own:
            made.flags = event.flags
        for column, value in zip(self._columns, event.values, strict=True):
            _set(made, column, value)
        try:
            payload: bytes = made.SerializeToString(deterministic=True)
        except Error as error:
            raise BadRecord(f"the definition does not take it: {error}") from None
        return payload


class Definition(NamedTuple):
    """What a compiled `.proto` file says.

    Attributes:
        text: the file.
        own: what is in it, without what it imports.
        pool: all messages.
    """

    text: str
    own: descriptor_pb2.FileDescriptorProto
    pool: descriptor_pool.DescriptorPool

    def message(self, name: str) -> Descriptor:
        """Return the message with a name, with or without its package.

        Raises:
            ConfigError: there is none; the text lists those that there are.
        """
        for each in (name, f"{self.own.package}.{name}"):
            try:
                return self.pool.FindMessageTypeByName(each)
            except KeyError:
                continue
        listed = ", ".join(one.name for one in self.own.message_type) or "none"
        raise ConfigError(f"the definition has no message {name!r} (there are: {listed})")

    def at(self, places: Sequence[int]) -> Descriptor:
        """Return the message at a place: that of the file, that in it, and so on.

        Raises:
            ConfigError: there is none.
        """
        names, level = [], self.own.message_type
        for place in places:
            if not 0 <= place < len(level):
                raise ConfigError(f"the definition has no message at {list(places)}")
            names.append(level[place].name)
            level = level[place].nested_type
        return self.message(".".join(names))

    def places(self, message: Descriptor) -> tuple[int, ...]:
        """Return the place of a message, as `at` has it.

        Raises:
            ConfigError: it is one of a file that is imported.
        """
        package = f"{self.own.package}." if self.own.package else ""
        places, level = [], self.own.message_type
        for name in message.full_name.removeprefix(package).split("."):
            found = [place for place, one in enumerate(level) if one.name == name]
            if not found or message.file.name != _FILE:
                raise ConfigError(f"message {message.full_name!r} is not of the definition itself")
            places.append(found[0])
            level = level[found[0]].nested_type
        return tuple(places)

    def chosen(self, name: str | None) -> Descriptor:
        """Return the message with a name; without a name, the first one."""
        return self.at((0,)) if name is None else self.message(name)


def compiled(definition: str, others: Mapping[str, str] | None = None) -> Definition:
    """Return what a definition says.

    Args:
        definition: the text of a `.proto` file; it can import Google's own ones.
        others: texts of further files that it imports, by their names.

    Raises:
        NotGivenError: it could not be compiled this time.
        ConfigError: it cannot be compiled.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, text in {**(others or {}), _FILE: definition}.items():
            _write_file(place, name, text)
        result = _protoc(place)
        if result.returncode:
            raise ConfigError(
                f"this is no definition of Protobuf: {_said(result.stderr, folder)}\n"
                f"{definition[:2000]}"
            )
        found = descriptor_pb2.FileDescriptorSet.FromString((place / "set").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    own = next(file for file in found.file if file.name == _FILE)
    return Definition(definition, own, pool)


def _protoc(folder: Path) -> "subprocess.CompletedProcess[str]":
    known = files("grpc_tools") / "_proto"
    try:
        result = subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{known}",
             "--include_imports", f"--descriptor_set_out={folder / 'set'}", _FILE],
            capture_output=True, text=True, check=False, timeout=_COMPILE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NotGivenError(f"the compiler of Protobuf takes longer than {_COMPILE_S} s") from None
    if result.returncode < 0:  # there may have been no memory for it
        raise NotGivenError(f"the compiler of Protobuf has died of signal {-result.returncode}")
    return result


def _write_file(folder: Path, name: str, text: str) -> None:
    """Write a file of a definition; its name comes from a registry, and must not lead elsewhere."""
    if name != _FILE and (not _IMPORTED.fullmatch(name) or name == "set"):
        raise ConfigError(f"{name[:100]!r} cannot be imported: give a name like shop/other.proto")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _registered(registry: SchemaRegistry, found: Registered) -> Definition:
    """Return a definition of a registry, compiled with those that it refers to."""
    text = found.part(_KIND)
    others = registry.referred(found, _KIND)
    if _FILE in others:
        raise ConfigError(f"schema {found.id} of the registry imports a file called {_FILE}")
    return compiled(text, others)


def read_indexes(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Read which message of a schema follows; return its place, and where the message begins.

    Raises:
        BadRecord: that is not said.
    """
    count, at = _whole(payload, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= _DEEPEST:
        raise BadRecord("the message does not say which one of its schema it is")
    places = []
    for _ in range(count):
        place, at = _whole(payload, at)
        places.append(place)
    return tuple(places), at


def written_indexes(places: Sequence[int]) -> bytes:
    """Return what says which message of its file follows."""
    return b"\0" if list(places) == [0] else b"".join(map(_varint, [len(places), *places]))


def _whole(payload: bytes, at: int) -> tuple[int, int]:
    """Read a number (zigzag, as a varint), and return it with the place behind it."""
    value = shift = 0
    for place in range(at, min(at + 5, len(payload))):
        value |= (payload[place] & 0x7F) << shift
        if payload[place] < 0x80:
            return (value >> 1) ^ -(value & 1), place + 1
        shift += 7
    raise BadRecord("the message does not say which one of its schema it is")


def _varint(number: int) -> bytes:
    """Write a number from 0, as `_whole` reads it."""
    left, parts = number << 1, bytearray()
    while left >= 0x80:
        parts.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*parts, left])


def _said(errors: str, folder: str) -> str:
    """Return what the compiler says of the definition; warnings of its library stay out."""
    lines = errors.replace(f"{folder}/", "").splitlines()
    told = [line for line in lines if line.startswith(f"{_FILE}:")]
    return "; ".join((told or lines)[:5])


def _all_there(
    fields: Sequence[Field], message: Descriptor, spare: Callable[[Field], bool]
) -> None:
    given = message.fields_by_name
    absent = [one.name for one in fields if one.name not in given and not spare(one)]
    if absent:
        raise Misfit(f"it has no field {', '.join(absent)}")


def _own(fields: Sequence[Field], message: Descriptor) -> set[str]:
    """Return which of opcode and flags the message has for the event itself."""
    names = [one for one in (OPCODE, FLAGS) if one in message.fields_by_name]
    texts = {one for one in names if _kind(message.fields_by_name[one]) == ("string", False)}
    return texts - {one.name for one in fields}


def _column(
    field: Field,
    message: Descriptor,
    fits: dict[str, set[str]],
    converter: Callable[[str, str], Convert],
) -> _Column:
    part = message.fields_by_name.get(field.name)
    if part is None:
        return _Column(field, None, lambda value: value)
    kind, repeated = _kind(part)
    element = ARRAYS.get(field.type, field.type)
    if repeated != (field.type in ARRAYS) or kind not in fits[element]:
        shown = f"repeated {kind}" if repeated else kind
        raise Misfit(f"field {field.name} ({field.type}) is {shown} in it")
    convert = converter(element, kind)
    if repeated:
        return _Column(field, part, lambda value: tuple([convert(one) for one in value]))
    return _Column(field, part, convert)


def _kind(part: FieldDescriptor) -> tuple[str, bool]:
    """Return the type of a field, and whether it is repeated."""
    kind = _KINDS[part.type]
    if part.message_type is not None and part.message_type.full_name == _TIMESTAMP:
        kind = _TIMESTAMP
    return kind, part.is_repeated


def _read(type_: str, kind: str) -> Convert:
    if kind == _TIMESTAMP:
        if type_ == "date":
            return lambda value: value.seconds
        return lambda value: value.seconds * 1_000_000 + value.nanos // 1_000
    return float if type_ in {"double", "money"} else lambda value: value


def _write(type_: str, kind: str) -> Convert:
    if kind == _TIMESTAMP:
        if type_ == "date":
            return lambda value: (value, 0)
        return lambda value: (value // 1_000_000, value % 1_000_000 * 1_000)
    return float if kind == "double" else lambda value: value


def _set(made: Any, column: _Column, value: Value) -> None:
    """Put a value into a message.

    Raises:
        BadRecord: it is a null where the message has none.
    """
    field, part, convert = column
    assert part is not None  # noqa: S101 - all are there
    null = f"field {field.name}: null, which the definition does not take"
    if value is None:
        if not part.has_presence:
            raise BadRecord(null)
    elif part.is_repeated:
        if isinstance(value, tuple) and None in value:
            raise BadRecord(null)
        getattr(made, field.name).extend(convert(value))
    elif part.message_type is not None:
        inner: Message = getattr(made, field.name)
        inner.SetInParent()
        inner.seconds, inner.nanos = convert(value)  # type: ignore[attr-defined]
    else:
        setattr(made, field.name, convert(value))
