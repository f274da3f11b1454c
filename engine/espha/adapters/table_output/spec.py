"""A table of a database that takes what a window publishes."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from espha.adapters.config import AdapterType, Part

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,62}"


class OutputTable(Part):
    """A table of SQLite or PostgreSQL to write to."""

    either: ClassVar[tuple[str, ...]] = ("path", "url")
    """Settings of which exactly one is given."""

    path: Path | None = Field(None, description="Database file of SQLite; it is made.")
    url: (
        Annotated[
            str,
            StringConstraints(
                pattern=r"^postgresql://([A-Za-z0-9_.%-]+@)?[A-Za-z0-9_.-]+(:[0-9]{1,5})?"
                r"/[A-Za-z0-9_.%-]+$",
                max_length=500,
            ),
        ]
        | None
    ) = Field(
        None,
        description="Database of PostgreSQL, `postgresql://[USER@]HOST[:PORT]/DATABASE`. The "
        "password is not part of it: give it in the environment (PGPASSWORD, from a Secret).",
    )
    table: Annotated[str, StringConstraints(pattern=rf"^({_NAME}\.)?{_NAME}$", max_length=127)] = (
        Field(description="The table, as [SCHEMA.]NAME; it is made where there is none.")
    )
    mode: Literal["upsert", "append"] = Field(
        "upsert",
        description="One row for each key, as the window has it (upsert), or one for each event, "
        "with its offset, opcode and flags (append).",
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise ValueError("give exactly one of: path, url")
        return self


ADAPTER = AdapterType("table", "sub", OutputTable)
