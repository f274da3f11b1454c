"""A folder of Parquet files that takes what a window publishes."""

from pathlib import Path

from pydantic import Field

from espha.adapters.config import AdapterType, Part


class OutputParquet(Part):
    """A dataset of Parquet files to write."""

    path: Path = Field(description="The folder; it is made where there is none.")
    file_rows: int = Field(
        100_000, ge=1, le=1_000_000, description="A file is written once there are so many rows."
    )
    file_seconds: int = Field(
        60, ge=1, le=86_400, description="A file is written so many seconds after its first row."
    )


ADAPTER = AdapterType("parquet", "sub", OutputParquet)
