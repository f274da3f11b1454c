"""Messages of a WebSocket."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from espha.adapters.config import AdapterType, Part
from espha.adapters.formats.spec import LinesIn

ADDRESS: Final = r"^wss?://[A-Za-z0-9_.-]+(:[0-9]{1,5})?([/?][^\s@#]*)?$"


class InputWebsocket(Part):
    """A WebSocket to connect to, whose messages are rows."""

    address: Annotated[str, StringConstraints(pattern=ADDRESS, max_length=1000)] = Field(
        description="Where to connect to, `ws[s]://HOST[:PORT]/PATH`. What the variable "
        "HTTP_AUTHORIZATION holds (from a Secret) is sent as header Authorization."
    )
    configuration: Path | None = Field(
        None,
        description="A file with the configuration of a websocket connector: which events a "
        "message is. Without it, `format` says that.",
    )
    properties: str = Field(
        "",
        max_length=4000,
        description="Values for tokens in the configuration, `NAME=value;…`.",
    )
    format: LinesIn = Field(
        LinesIn(type="json"), description="How messages are written; by default as JSON."
    )
    max_bytes: int = Field(1 << 20, ge=1024, le=8 << 20, description="The largest message.")


ADAPTER = AdapterType("websocket", "pub", InputWebsocket)
