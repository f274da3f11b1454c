"""Rows that others post over HTTP."""

from typing import ClassVar

from pydantic import Field

from espha.adapters.config import AdapterType, Part
from espha.adapters.formats.spec import LinesIn


class InputHttp(Part):
    """Rows that others post over HTTP; they are answered when these are committed."""

    listens: ClassVar[str] = "port"
    """The setting that says where it listens."""

    port: int = Field(
        ge=1024, le=65_535, description="Port on which it takes requests: POST, at any path."
    )
    format: LinesIn = Field(LinesIn(), description="How the rows in a body are written.")
    max_bytes: int = Field(
        1 << 20,
        ge=1024,
        le=8 << 20,
        description="The largest body, expanded; a larger one is answered with 413.",
    )
    ids: int = Field(
        1000,
        ge=0,
        le=10_000,
        description="So many of the last values of the header Idempotency-Key are remembered: what "
        "is sent again under one of them is answered, and not published again.",
    )


ADAPTER = AdapterType("http", "pub", InputHttp)
