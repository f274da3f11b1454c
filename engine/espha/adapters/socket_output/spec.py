"""A peer that rows are sent to as lines."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from espha.adapters.config import AdapterType, Part
from espha.adapters.formats.spec import LinesOut


class OutputSocket(Part):
    """A peer that takes lines over TCP: it is connected to, or connects itself."""

    either: ClassVar[tuple[str, ...]] = ("port", "connect")
    """Settings of which exactly one is given."""
    listens: ClassVar[str] = "port"
    """The setting that says where it listens."""

    port: int | None = Field(
        None,
        ge=1024,
        le=65_535,
        description="Port on which it waits for the peer; the newest connection counts.",
    )
    connect: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+:[0-9]{1,5}$", max_length=260)]
        | None
    ) = Field(None, description="The peer to connect to, `HOST:PORT`.")
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

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.port is None) == (self.connect is None):
            raise ValueError("give exactly one of: port, connect")
        return self


ADAPTER = AdapterType("socket", "sub", OutputSocket)
