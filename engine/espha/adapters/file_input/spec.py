"""A file that feeds a source window: rows of CSV, or lines of JSON."""

from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from espha.adapters.config import AdapterType
from espha.adapters.formats.encodings import ENCODING, UTF_8, Encoding
from espha.adapters.formats.spec import OF_CSV, check_rules, refuse_columns
from espha.records.layout import CsvLayout


class InputFile(CsvLayout):
    """A file to read, or a folder of them; what gzip or zstd has compressed is expanded."""

    model_config = ConfigDict(json_schema_extra=check_rules(csv=OF_CSV))

    path: Path = Field(description="The file, or the folder; it may appear later.")
    pattern: str = Field(
        "",
        max_length=200,
        description="Names of files, with `*`, `?` and `[…]`: the path is a folder, and those of "
        "its files are read, each once, in the order of their names. Without it, the path is one "
        "file.",
    )
    format: Literal["csv", "json"] = Field(
        "csv",
        description="Rows of CSV, or lines of JSON: an object with the fields, and `opcode` and "
        "`flags` where it has them, or several in an array.",
    )
    encoding: Encoding = Field(UTF_8, description=ENCODING)
    growing: bool = Field(
        False,
        description="Others append to the file: a line counts once its newline is there. "
        "Otherwise the last line needs none.",
    )
    settle_s: float = Field(
        2.0,
        ge=0,
        le=3600,
        description="Seconds for which a file must stand still before its end counts: the last "
        "line without a newline, and the change to the file that has taken its place.",
    )
    truncated: Literal["wait", "new"] = Field(
        "wait",
        description="What a file is that is shorter than what was read of it, and begins like it: "
        "`wait` until it is whole again, or `new` and read from its beginning.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        refuse_columns(self, self.format)
        return self


ADAPTER = AdapterType("file", "pub", InputFile)
