"""What every message between processes has in common."""

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """A message as JSON: written whole, read leniently.

    Fields that a reader does not know are ignored: while a deployment is upgraded, a newer process
    may say more to an older one. A field that is missing where it has no default, a value of
    another type, a state or reason that the reader does not know make the message unreadable.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    def encode(self) -> bytes:
        """Return the message as one line of UTF-8, with its newline."""
        return self.model_dump_json(exclude_none=True).encode() + b"\n"
