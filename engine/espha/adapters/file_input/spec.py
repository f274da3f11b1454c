"""A CSV file that feeds a source window."""

from pathlib import Path

from pydantic import Field

from espha.adapters.config import AdapterType
from espha.records.layout import CsvLayout


class InputFile(CsvLayout):
    """A CSV file to read."""

    path: Path = Field(description="The file; it may appear later.")
    growing: bool = Field(
        False,
        description="Others append to the file: a line counts once its newline is there. "
        "Otherwise the last line needs none.",
    )


ADAPTER = AdapterType("file", "pub", InputFile)
