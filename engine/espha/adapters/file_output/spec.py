"""A file that takes what a window publishes: lines of CSV, or of JSON."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from espha.adapters.config import AdapterType, Part


class OutputFile(Part):
    """A file to write: CSV, or JSON lines."""

    path: Path = Field(description="The file; it is made where there is none.")
    format: Literal["record", "json"] = Field(
        "record",
        description="A line is the record as it is on the topic (record), or an object of JSON "
        "with opcode, flags and the fields (json).",
    )
    header: Literal["none", "true", "full"] = Field(
        "none",
        description="First line: none, the field names (true), or opcode, flags and the field "
        "names (full).",
    )
    missing: Literal["refuse", "new"] = Field(
        "refuse",
        description="What follows when the file was deleted: the adapter refuses to go on (refuse)"
        ", or goes on behind what it has written, in a new file (new).",
    )
    rotate_bytes: int | None = Field(
        None,
        ge=1,
        le=2**50,
        description="The file is full once it has so many bytes: it is renamed to "
        "`<name>-<first offset>`, and a new one begins. Without it, size fills no file.",
    )
    rotate_seconds: int | None = Field(
        None,
        ge=1,
        le=31_622_400,
        description="The file is full so many seconds after its first row.",
    )


ADAPTER = AdapterType("file", "sub", OutputFile)
