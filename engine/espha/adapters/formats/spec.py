"""Formats as they stand in the configuration of an adapter."""

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from espha.adapters.config import Part
from espha.records.layout import CsvColumns

_OF_CSV: Final = ("opcode", "flags", "autogen_field", "delimiter")


class InputFormat(CsvColumns):
    """How the rows are written that a source gets."""

    type: Literal["csv", "json"] = Field(
        "csv",
        description="`csv`: rows, one a line; `json`: objects with the fields, and `opcode` and "
        "`flags` where they have them, one a line or several in an array.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.type != "csv":
            for name in _OF_CSV:
                if getattr(self, name) != type(self).model_fields[name].default:
                    shown = type(self).model_fields[name].alias or name
                    raise ValueError(f"{shown} is for format csv, not for {self.type}")
        return self


class OutputFormat(Part):
    """How the rows are written that a target gets."""

    type: Literal["csv", "json"] = Field(
        "csv",
        description="`csv`: `opcode,flags,field,…`; `json`: an object with `opcode`, `flags` and "
        "the fields.",
    )
