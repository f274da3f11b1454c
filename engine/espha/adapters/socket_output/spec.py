"""A peer that rows are sent to as lines."""

from typing import Annotated

from pydantic import Field, StringConstraints

from espha.adapters.config import AdapterType, Part
from espha.adapters.formats.spec import LinesOut


class OutputSocket(Part):
    """A peer that takes lines over TCP."""

    connect: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+:[0-9]{1,5}$", max_length=260)
    ] = Field(description="The peer to send to, `HOST:PORT`.")
    format: LinesOut = Field(LinesOut(), description="How a line is written.")
    ids: bool = Field(
        False,
        description="Lines are numbered, and the peer says which it has, as an input adapter with "
        "`ids` does: each line counts exactly once.",
    )
    timeout_s: float = Field(
        30.0,
        ge=0.1,
        le=600,
        description="Seconds after which a peer that takes nothing, or acknowledges nothing, is "
        "left, and connected to again.",
    )


ADAPTER = AdapterType("socket", "sub", OutputSocket)
