"""Snapshots: the state after an order record, as a file that shows every damage.

A file is, in this order: the line `ESPHA snapshot 1` (1 is the version of the format, which also
changes when the state of a window takes another form); length of the header (4 bytes, big-endian);
the header (JSON, `Header`); SHA-256 of everything before it; the body, whose length and SHA-256
the header names.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from espha.durable import UNFINISHED, replace_file
from espha.protocol.order import Cursor
from espha.protocol.status import Counts

_LEAD = b"ESPHA snapshot "
_MAGIC = _LEAD + b"1\n"
_LENGTH_BYTES = 4
_SUM_BYTES = 32
_LONGEST_HEADER = 1 << 20
LARGEST_BODY = 1 << 30
"""Bytes of a body, compressed, that an engine is willing to read."""

_PREFIX, _SUFFIX = "snapshot-", ".espha"
_ASIDE = ".refused"


class SnapshotError(Exception):
    """A snapshot cannot be used; the text says why."""


class SnapshotMeta(BaseModel):
    """What a state stands for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sequence: int
    epoch: int
    clock: int
    """Milliseconds since 1970, of the order record."""
    model: str
    """Digest of the model."""
    order_log: int
    """Every order record below this offset is processed."""
    inputs: dict[str, Cursor]
    """For each input topic that order records have named."""
    topics: dict[str, str]
    """Kafka's id of the order log and each input topic: a topic made anew has another one."""
    counts: Counts
    """What was processed until then."""


class Header(SnapshotMeta):
    """What a file says of its body, and who made it when."""

    engine: str
    runtime: str
    """Versions of espha, Python and PySpark."""
    made: int
    """Milliseconds since 1970, of the machine that made it."""
    length: int
    digest: str


class Snapshot(NamedTuple):
    """A header and its body (`espha.recovery.plain`)."""

    header: Header
    body: bytes


class Source(Protocol):
    """Something to read bytes from: a file, an HTTP response."""

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""


def make(meta: SnapshotMeta, body: bytes, engine: str, runtime: str, made: int) -> Snapshot:
    """Return the snapshot of a body; `made` is in milliseconds since 1970."""
    header = Header(
        **dict(meta),
        engine=engine,
        runtime=runtime,
        made=made,
        length=len(body),
        digest=hashlib.sha256(body).hexdigest(),
    )
    return Snapshot(header, body)


def encode(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the parts of a snapshot's file."""
    header = snapshot.header.model_dump_json().encode()
    front = _MAGIC + len(header).to_bytes(_LENGTH_BYTES, "big") + header
    yield front
    yield hashlib.sha256(front).digest()
    yield snapshot.body


def read_header(source: Source) -> Header:
    """Read the part before the body.

    Raises:
        SnapshotError: it is damaged, or of another format.
        OSError: it cannot be read.
    """
    magic = _exactly(source, len(_MAGIC))
    if magic != _MAGIC:
        raise SnapshotError(
            f"its format is {magic[len(_LEAD) :].strip().decode(errors='replace')}, not 1"
            if magic.startswith(_LEAD)
            else "it does not begin as a snapshot does"
        )
    length = _exactly(source, _LENGTH_BYTES)
    size = int.from_bytes(length, "big")
    if size > _LONGEST_HEADER:
        raise SnapshotError(f"its header has {size} bytes, more than {_LONGEST_HEADER}")
    header = _exactly(source, size)
    if _exactly(source, _SUM_BYTES) != hashlib.sha256(magic + length + header).digest():
        raise SnapshotError("the checksum of its header is wrong")
    try:
        return Header.model_validate_json(header)
    except ValidationError as error:
        raise SnapshotError(f"its header has {error.error_count()} wrong fields") from None


def read_snapshot(source: Source) -> Snapshot:
    """Read a whole snapshot.

    Raises:
        SnapshotError: it is damaged anywhere, is too large, or of another format.
        OSError: it cannot be read.
    """
    header = read_header(source)
    if not 0 <= header.length <= LARGEST_BODY:
        raise SnapshotError(f"its body has {header.length} bytes, more than {LARGEST_BODY}")
    body = _exactly(source, header.length)
    if hashlib.sha256(body).hexdigest() != header.digest:
        raise SnapshotError("the checksum of its body is wrong")
    if source.read(1):
        raise SnapshotError("there is something behind its end")
    return Snapshot(header, body)


def _exactly(source: Source, size: int) -> bytes:
    parts: list[bytes] = []
    missing = size
    while missing and (part := source.read(missing)):
        parts.append(part)
        missing -= len(part)
    if missing:
        raise SnapshotError("it ends too early")
    return b"".join(parts)


class SnapshotStore:
    """The folder with an engine's snapshots; the newest `keep` of them stay."""

    def __init__(self, folder: Path, keep: int = 3) -> None:
        self.folder, self._keep = folder, keep

    def open(self) -> None:
        """Make the folder ready: it exists, can be written to, and holds nothing unfinished.

        Raises:
            OSError: it cannot be made or written to.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(f"*{UNFINISHED}"):
            left.unlink()
        probe = self.folder / f"probe{UNFINISHED}"
        probe.write_bytes(b"")
        probe.unlink()

    def path(self, sequence: int) -> Path:
        """Return the file of the snapshot of a sequence, there or not."""
        return self.folder / f"{_PREFIX}{sequence:020d}{_SUFFIX}"

    def files(self, before: int | None = None, at_least: int = 0) -> list[Path]:
        """Return the snapshots' files, newest first.

        Args:
            before: only those of lower sequence.
            at_least: only those of this sequence or a higher one.
        """
        found = {
            int(path.name[len(_PREFIX) : -len(_SUFFIX)]): path
            for path in self.folder.glob(f"{_PREFIX}*{_SUFFIX}")
            if path.name[len(_PREFIX) : -len(_SUFFIX)].isdecimal()
        }
        newest = sorted(found, reverse=True)
        return [found[at] for at in newest if at >= at_least and (before is None or at < before)]

    def write(self, snapshot: Snapshot) -> Path:
        """Write a file, whole or not at all, and remove what is older than the newest `keep`.

        Raises:
            OSError: the volume is full or cannot be written to; nothing has changed.
        """
        path = self.path(snapshot.header.sequence)
        replace_file(path, encode(snapshot))
        for old in self.files()[self._keep :]:
            if old != path:
                old.unlink(missing_ok=True)
        return path

    def read(self, path: Path) -> Snapshot:
        """Read a file.

        Raises:
            SnapshotError: it is damaged.
            OSError: it cannot be read.
        """
        with path.open("rb") as file:
            return read_snapshot(file)

    def set_aside(self, path: Path) -> None:
        """Take a file out of use; it stays for people to look at until `keep` others follow."""
        with contextlib.suppress(OSError):
            path.replace(path.with_name(path.name + _ASIDE))
            aside = sorted(self.folder.glob(f"*{_ASIDE}"), key=_changed, reverse=True)
            for old in aside[self._keep :]:
                old.unlink(missing_ok=True)


def _changed(path: Path) -> float:
    return path.stat().st_mtime
