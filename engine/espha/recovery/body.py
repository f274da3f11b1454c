"""The body of a snapshot, as its file and its writer know it."""

from typing import NamedTuple, Protocol


class Written(NamedTuple):
    """What was written.

    Attributes:
        length: number of bytes.
        checksum: their SHA-256 (hex).
        digest: SHA-256 (hex) of the data: the same for equal data.
    """

    length: int
    checksum: str
    digest: str


class Source(Protocol):
    """Something to read bytes from: a file, an HTTP response."""

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
