"""A server that rows are posted to."""

from typing import Annotated

from pydantic import Field, StringConstraints

from espha.adapters.config import AdapterType, Part
from espha.adapters.formats.spec import LinesOut


class OutputHttp(Part):
    """A server that takes rows over HTTP, several in a request."""

    address: Annotated[
        str,
        StringConstraints(
            pattern=r"^https?://[A-Za-z0-9_.-]+(:[0-9]{1,5})?(/[^\s@#]*)?$", max_length=1000
        ),
    ] = Field(
        description="Where rows are posted to, `http[s]://HOST[:PORT]/PATH`. What the variable "
        "HTTP_AUTHORIZATION holds (from a Secret) is sent as header Authorization."
    )
    format: LinesOut = Field(
        LinesOut(), description="How the rows in a body are written, one a line."
    )
    max_rows: int = Field(500, ge=1, le=5000, description="So many rows at most in a request.")
    timeout_s: float = Field(
        30.0, ge=0.1, le=600, description="Seconds after which an answer that is not there is late."
    )


ADAPTER = AdapterType("http", "sub", OutputHttp)
