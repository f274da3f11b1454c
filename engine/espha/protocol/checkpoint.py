"""Checkpoints: an engine has its Spark worker fork a process that reads the state as it is then.

The order travels into the worker as JSON, with the rows of a call; the worker's answer is
`CheckpointBegun`. What the forked process has found, `CheckpointReport`, goes over a pipe of the
engine's to the engine, past Spark.
"""

from pydantic import Field

from espha.protocol.message import Message


class CheckpointOrder(Message):
    """What is to be done with the state."""

    report: str
    """Path of the pipe for the report."""
    path: str = ""
    """File to write the state to; empty: only its digest is wanted."""
    offset: int = 0
    """Where in the file the state begins."""


class CheckpointBegun(Message):
    """The worker's answer, at once."""

    sequence: int | None = None
    """Order record after which the state is taken; None: it is not taken."""
    pause_ms: float = 0
    """How long the worker was held up."""
    error: str = ""
    """Why it is not taken; empty: it is."""
    busy: bool = False
    """It is not taken because the one before is still under way."""


class RestoreOrder(Message):
    """Where a state is to be read from."""

    sequence: int
    """Order record that it stands for."""
    path: str
    offset: int
    """Where in the file it begins; it ends with the file."""


class Restored(Message):
    """What has become of it."""

    sequence: int | None = None
    error: str = ""
    """Why it was not read; empty: it was."""
    passing: bool = False
    """The error may be over next time, with more memory or a volume that answers."""


class CheckpointReport(Message):
    """What has become of it."""

    sequence: int = 0
    state: str = Field("", description="SHA-256 (hex) of the state.")
    length: int = 0
    """Bytes of the file behind `offset`."""
    checksum: str = ""
    """SHA-256 (hex) of them."""
    took_ms: int = 0
    memory: int = 0
    """Bytes of memory that the forked process has for itself at its end."""
    error: str = ""
    """Why there is none; empty: there is."""
