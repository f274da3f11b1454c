"""Protobuf: one message of a definition for each event."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Error, Message

from espha.adapters.config import ConfigError
from espha.adapters.formats.codec import FLAGS, OPCODE, Misfit, refusal
from espha.adapters.formats.spec import ProtobufInput, ProtobufOutput
from espha.model import Field, Window
from espha.model.events import BadRecord, Event, Value
from espha.model.types import ARRAYS, checker
from espha.records.text import read_flags, read_opcode
from espha.windows.source.spec import SourceWindow

Convert = Callable[[Any], Any]

_FILE: Final = "definition.proto"
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

    def __init__(self, window: Window, given: ProtobufInput, default: tuple[str, str]) -> None:
        """Compile the definition.

        Raises:
            ConfigError: it is none, or does not fit the window's schema.
        """
        message = compiled(given.definition, given.message)
        self._made, self._default = message_factory.GetMessageClass(message), default
        auto = isinstance(window, SourceWindow) and window.autogen_key
        try:
            _all_there(window.fields, message, lambda field: auto and field.key)
            columns = [_column(one, message, _READS, _read) for one in window.fields]
        except Misfit as misfit:
            raise refusal(window, str(misfit), given.definition) from None
        self._columns = [(one, one.check) for one in columns]
        self._own = _own(window.fields, message)

    def decode(self, payload: bytes) -> Event:
        """Return the event of a payload."""
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
        """Compile the definition.

        Raises:
            ConfigError: it is none, or does not fit the window's schema.
        """
        message = compiled(given.definition, given.message)
        self._made = message_factory.GetMessageClass(message)
        self._own = _own(window.fields, message)
        try:
            _all_there(window.fields, message, lambda _: False)
            if given.opcode and OPCODE not in self._own:
                raise Misfit("it has no field opcode; set protobuf.opcode to false to write none")
            self._columns = [_column(one, message, _WRITES, _write) for one in window.fields]
        except Misfit as misfit:
            raise refusal(window, str(misfit), given.definition) from None

    def encode(self, event: Event) -> bytes:
        """Return the payload of an event."""
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


def compiled(definition: str, message: str) -> Descriptor:
    """Return what a definition says of a message.

    Args:
        definition: the text of a `.proto` file; it can import Google's own ones.
        message: the message's name, with or without its package.

    Raises:
        ConfigError: it cannot be compiled, or has no such message.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / _FILE).write_text(definition, encoding="utf-8")
        known = files("grpc_tools") / "_proto"
        result = subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{place}", f"-I{known}",
             "--include_imports", f"--descriptor_set_out={place / 'set'}", _FILE],
            capture_output=True, text=True, check=False, timeout=_COMPILE_S,
        )  # fmt: skip
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
    for name in (message, f"{own.package}.{message}"):
        try:
            return pool.FindMessageTypeByName(name)
        except KeyError:
            continue
    listed = ", ".join(one.name for one in own.message_type) or "none"
    raise ConfigError(f"the definition has no message {message!r} (there are: {listed})")


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
