"""Contents of addresses that are asked for at an interval."""

from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, StringConstraints, model_validator

from espha.adapters.config import AdapterType, Part
from espha.adapters.formats.spec import LinesIn

ADDRESS: Final = r"^https?://[A-Za-z0-9_.-]+(:[0-9]{1,5})?([/?][^\s@#]*)?$"


class InputPoll(Part):
    """Contents of the web that are asked for at an interval; each new one is published."""

    either: ClassVar[tuple[str, ...]] = ("address", "configuration")
    """Settings of which exactly one is given."""

    address: Annotated[str, StringConstraints(pattern=ADDRESS, max_length=1000)] | None = Field(
        None,
        description="What is asked, `http[s]://HOST[:PORT]/PATH`. What the variable "
        "HTTP_AUTHORIZATION holds (from a Secret) is sent as header Authorization.",
    )
    configuration: Path | None = Field(
        None,
        description="A file with the configuration of a url connector: which addresses are asked, "
        "and which events their contents are.",
    )
    properties: str = Field(
        "",
        max_length=4000,
        description="Values for tokens in the configuration, `NAME=value;…`.",
    )
    interval_s: float = Field(
        60.0, ge=1, le=86_400, description="Seconds from one question to the next one."
    )
    format: LinesIn = Field(
        LinesIn(),
        description="How the rows of the address's content are written; a configuration says that "
        "itself.",
    )
    max_bytes: int = Field(
        1 << 20, ge=1024, le=8 << 20, description="The largest content, expanded."
    )
    timeout_s: float = Field(
        10.0, ge=0.1, le=60, description="Seconds after which an answer that is not there is late."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.address is None) == (self.configuration is None):
            raise ValueError("give exactly one of: address, configuration")
        return self


ADAPTER = AdapterType("poll", "pub", InputPoll)
