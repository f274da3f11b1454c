"""A CSV file that takes what a window publishes."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from espha.adapters.config import AdapterType, Part


class OutputFile(Part):
    """A CSV file to write."""

    path: Path = Field(description="The file; it is made where there is none.")
    header: Literal["none", "true", "full"] = Field(
        "none",
        description="First line: none, the field names (true), or opcode, flags and the field "
        "names (full).",
    )


ADAPTER = AdapterType("file", "sub", OutputFile)
