"""Events that a script makes."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from espha.adapters.config import AdapterType, Part
from espha.model.dates import check_date_format

NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
_Name = Annotated[str, StringConstraints(pattern=NAME)]


class InputScript(Part):
    """A script whose function makes events."""

    language: Literal["python", "lua"] = Field(description="What the script is written in.")
    code: str = Field(min_length=1, max_length=100_000, description="The script.")
    publish: _Name = Field("publish", description="The function that is called for events.")
    init: _Name | None = Field(
        None, description="The function that is called once before (Python)."
    )
    interval_ms: int = Field(
        1000, ge=20, le=86_400_000, description="Milliseconds from one call to the next one."
    )
    max_events: int | None = Field(
        None, ge=1, description="So many events are made at least; then there are no more calls."
    )
    date_format: Annotated[str, AfterValidator(check_date_format)] = Field(
        "", max_length=200, description="strptime format of dates in the events."
    )
    home: Path | None = Field(
        None, description="Folder whose files the script may read (Python); without it, none."
    )


ADAPTER = AdapterType("script", "pub", InputScript)
