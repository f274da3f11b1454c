"""Lines that come over sockets."""

from typing import Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from espha.adapters.config import AdapterType, Part
from espha.adapters.formats.encodings import is_wide
from espha.adapters.formats.spec import LinesIn, check_rules


class InputSocket(Part):
    """Lines that come over TCP: it listens for peers, or connects to one."""

    model_config = ConfigDict(
        json_schema_extra=check_rules(
            newline="A line of a socket ends with the byte 10; utf-16 and utf-32 are for files and "
            "messages."
        )
    )

    either: ClassVar[tuple[str, ...]] = ("port", "connect")
    """Settings of which exactly one is given."""
    listens: ClassVar[str] = "port"
    """The setting that says where it listens."""

    port: int | None = Field(
        None, ge=1024, le=65_535, description="Port on which it listens for peers that send lines."
    )
    connect: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+:[0-9]{1,5}$", max_length=260)]
        | None
    ) = Field(None, description="The peer to connect to and to read from, `HOST:PORT`.")
    format: LinesIn = Field(LinesIn(), description="How a line is written.")
    ids: bool = Field(
        False,
        description="Peers name their stream and number their lines, and are told what is "
        "committed, so that each line counts exactly once; see the reference.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.port is None) == (self.connect is None):
            raise ValueError("give exactly one of: port, connect")
        return self

    @model_validator(mode="after")
    def _newlines(self) -> Self:
        if is_wide(self.format.encoding):
            raise ValueError(
                f"encoding {self.format.encoding!r} is for files and messages; a line of a socket "
                "ends with the byte 10"
            )
        return self


ADAPTER = AdapterType("socket", "pub", InputSocket)
