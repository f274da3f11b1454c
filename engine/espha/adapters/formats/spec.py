"""Formats as they stand in the configuration of an adapter."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from espha.adapters.config import Part
from espha.adapters.formats.encodings import ENCODING, UTF_8, Encoding
from espha.records.layout import CsvColumns


def check_rules(**sentences: str) -> dict[str, Any]:
    """Return what the API server checks: rules by the names of sentences."""
    return {
        "x-kubernetes-validations": [
            {"rule": _RULES[name], "message": sentence} for name, sentence in sentences.items()
        ]
    }


OF_CSV: Final = "opcode, flags, autogenField and delimiter are for format csv."
_NO_COLUMNS: Final = (
    "((!has(self.opcode) || self.opcode) && (!has(self.flags) || self.flags) && "
    "(!has(self.autogenField) || self.autogenField) && "
    "(!has(self.delimiter) || self.delimiter == ','))"
)
_RULES: Final = {
    "one": "has(self.definition) != has(self.registry)",
    "any": "has(self.definition) || has(self.registry)",
    "named": "!has(self.definition) || has(self.message)",
    "avro": "(has(self.type) && self.type == 'avro') == has(self.avro)",
    "output": "(has(self.type) && self.type == 'avro') || !has(self.avro)",
    "protobuf": "(has(self.type) && self.type == 'protobuf') == has(self.protobuf)",
    "csv": f"!has(self.format) || self.format == 'csv' || {_NO_COLUMNS}",
    "encoding": "!has(self.encoding) || self.encoding == 'utf-8' || !has(self.type) || "
    "self.type in ['csv', 'json']",
    "newline": "!has(self.format) || !has(self.format.encoding) || "
    "!self.format.encoding.matches('^utf-(16|32)')",
    "csv_type": f"!has(self.type) || self.type == 'csv' || {_NO_COLUMNS}",
}
_TOGETHER: Final = "Type {0} and the settings {0} belong together."
_OF_TEXT: Final = "The setting encoding is for types csv and json."
_COLUMNS: Final = ("opcode", "flags", "autogen_field", "delimiter")


def refuse_columns(given: CsvColumns, form: str) -> None:
    """Refuse settings of columns where the format is another one than csv.

    Raises:
        ValueError: there is one; the text names it.
    """
    for name in _COLUMNS if form != "csv" else ():
        field = CsvColumns.model_fields[name]
        if getattr(given, name) != field.default:
            raise ValueError(f"{field.alias or name} is for format csv, not for {form}")


class Registry(Part):
    """A schema registry that speaks Confluent's REST API."""

    url: Annotated[
        str,
        StringConstraints(pattern=r"^https?://[A-Za-z0-9_.-]+(:[0-9]{1,5})?(/[A-Za-z0-9_./-]*)?$"),
    ] = Field(
        max_length=500,
        json_schema_extra={
            "x-sentence": "This is not the address of a registry; give http[s]://HOST[:PORT][/PATH]."
        },
        description="Its address, `http[s]://HOST[:PORT][/PATH]`. User and password stand in the "
        "variable `SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO`, as `USER:PASSWORD`.",
    )
    subject: str = Field(
        min_length=1,
        max_length=249,
        description="The subject whose newest schema has to fit the window's; often the topic's "
        "name and `-value`.",
    )


class AvroInput(Part):
    """Records of Avro that a source gets."""

    model_config = ConfigDict(
        json_schema_extra=check_rules(one="Give exactly one of: definition, registry.")
    )

    definition: str | None = Field(
        None,
        min_length=1,
        max_length=100_000,
        description="The schema that they are written with, as JSON.",
    )
    registry: Registry | None = Field(
        None, description="Where their schemas are; each record begins with the number of its own."
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.definition is None) == (self.registry is None):
            raise ValueError("give exactly one of: definition, registry")
        return self


class AvroOutput(Part):
    """Records of Avro that a target gets."""

    definition: str | None = Field(
        None,
        min_length=1,
        max_length=100_000,
        description="The schema to write them with, as JSON. Without it, that of the registry's "
        "subject; where it has none, too, one that is made of the window's.",
    )
    registry: Registry | None = Field(
        None, description="Where the schema is registered; each record begins with its number."
    )
    opcode: bool = Field(
        True,
        description="The schema has `opcode`; without it, what others get does not tell a "
        "deletion from an insert.",
    )


_DEFINITION = "The text of a `.proto` file; it can import Google's own ones."


class _ProtobufMessage(Part):
    """What the settings of messages of Protobuf have in common."""

    definition: str | None = Field(None, min_length=1, max_length=100_000, description=_DEFINITION)
    message: str | None = Field(
        None,
        min_length=1,
        max_length=250,
        description="The message's name; of a registry's schema, without it, the first one.",
    )

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.definition is not None and self.message is None:
            raise ValueError("a definition needs the name of the message")
        return self


class ProtobufInput(_ProtobufMessage):
    """Messages of Protobuf that a source gets."""

    model_config = ConfigDict(
        json_schema_extra=check_rules(
            one="Give exactly one of: definition, registry.",
            named="A definition needs the name of the message.",
        )
    )

    registry: Registry | None = Field(
        None, description="Where their schemas are; each message begins with the number of its own."
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.definition is None) == (self.registry is None):
            raise ValueError("give exactly one of: definition, registry")
        return self


class ProtobufOutput(_ProtobufMessage):
    """Messages of Protobuf that a target gets."""

    model_config = ConfigDict(
        json_schema_extra=check_rules(
            any="Give definition, registry or both.",
            named="A definition needs the name of the message.",
        )
    )

    registry: Registry | None = Field(
        None,
        description="Where the definition is registered, or, without one, taken from; each message "
        "begins with its number.",
    )
    opcode: bool = Field(
        True,
        description="The message has `opcode`; without it, what others get does not tell a "
        "deletion from an insert.",
    )

    @model_validator(mode="after")
    def _any(self) -> Self:
        if self.definition is None and self.registry is None:
            raise ValueError("give definition, registry or both")
        return self


class InputFormat(CsvColumns):
    """How the rows are written that a source gets."""

    model_config = ConfigDict(
        json_schema_extra=check_rules(
            avro=_TOGETHER.format("avro"),
            protobuf=_TOGETHER.format("protobuf"),
            csv_type=OF_CSV,
            encoding=_OF_TEXT,
        )
    )

    type: Literal["csv", "json", "avro", "protobuf"] = Field(
        "csv",
        description="`csv`: rows, one a line; `json`: objects with the fields, and `opcode` and "
        "`flags` where they have them, one a line or several in an array; `avro`, `protobuf`: one "
        "record each, for adapters of messages.",
    )
    encoding: Encoding = Field(UTF_8, description=ENCODING)
    avro: AvroInput | None = Field(None, description="Required with type avro.")
    protobuf: ProtobufInput | None = Field(None, description="Required with type protobuf.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        refuse_columns(self, self.type)
        if self.encoding != UTF_8 and self.type not in {"csv", "json"}:
            raise ValueError("the setting encoding is for types csv and json")
        if (self.type == "avro") != (self.avro is not None):
            raise ValueError("type avro and the settings avro belong together")
        _check_protobuf(self.type, self.protobuf)
        return self


class LinesIn(CsvColumns):
    """How rows are written that a source gets in lines."""

    model_config = ConfigDict(json_schema_extra=check_rules(csv_type=OF_CSV))

    type: Literal["csv", "json"] = Field(
        "csv",
        description="`csv`: rows, one a line; `json`: objects with the fields, and `opcode` and "
        "`flags` where they have them, one a line or several in an array.",
    )
    encoding: Encoding = Field(UTF_8, description=ENCODING)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        refuse_columns(self, self.type)
        return self


class LinesOut(Part):
    """How rows are written that a target gets in lines."""

    type: Literal["csv", "json"] = Field(
        "csv",
        description="`csv`: `opcode,flags,field,…`; `json`: an object with `opcode`, `flags` and "
        "the fields.",
    )


class OutputFormat(Part):
    """How the rows are written that a target gets."""

    model_config = ConfigDict(
        json_schema_extra=check_rules(
            output="The settings avro are for type avro.", protobuf=_TOGETHER.format("protobuf")
        )
    )

    type: Literal["csv", "json", "avro", "protobuf"] = Field(
        "csv",
        description="`csv`: `opcode,flags,field,…`; `json`: an object with `opcode`, `flags` and "
        "the fields; `avro`, `protobuf`: a record each, for adapters of messages.",
    )
    avro: AvroOutput | None = Field(None, description="The schema, with type avro.")
    protobuf: ProtobufOutput | None = Field(None, description="Required with type protobuf.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.avro is not None and self.type != "avro":
            raise ValueError("the settings avro are for type avro")
        _check_protobuf(self.type, self.protobuf)
        return self


def _check_protobuf(kind: str, given: ProtobufInput | ProtobufOutput | None) -> None:
    if (kind == "protobuf") != (given is not None):
        raise ValueError("type protobuf and the settings protobuf belong together")
