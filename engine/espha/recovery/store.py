"""Snapshots: the state after an order record, as a file that shows every damage.

A file is, in this order: the line `ESPHA snapshot 2` (2 is the version of the format, which also
changes when the state of a window takes another form); length of the header (4 bytes, big-endian);
the header (JSON, `Header`, filled up with spaces); SHA-256 of everything before it; the body
(`espha.recovery.plain`), whose length and SHA-256 the header names.

The body is written first, by another process, behind room for what comes before it (`Draft`).
Neither is ever held in memory as a whole.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from espha.durable import UNFINISHED, sync_folder, write_all
from espha.protocol.order import Cursor
from espha.protocol.status import Counts
from espha.recovery.body import Source, Written

_VERSION = b"2"
_LEAD = b"ESPHA snapshot "
_MAGIC = _LEAD + _VERSION + b"\n"
_LENGTH_BYTES = 4
_SUM_BYTES = 32
_LONGEST_HEADER = 1 << 20
_PART = 1 << 20
LARGEST_BODY = 1 << 32
"""Bytes of a body, compressed, that an engine is willing to read."""

_PREFIX, _SUFFIX = "snapshot-", ".espha"
REFUSED = ".refused"
"""Behind the name of a snapshot that nothing can make fit any more; it stays for people."""
DOUBTED = ".doubted"
"""Behind the name of a snapshot that is whole, and could not be restored here so far, or stands for
more than topics seemed to hold."""
DIVERGED = ".diverged"
"""Behind the name of one that this replica may have written of a state that was wrong."""
_MODEL_DIGITS = 12
_OTHERS = 3
"""Models besides the present one of which a snapshot is kept."""


class SnapshotError(Exception):
    """A snapshot cannot be used; the text says why."""


class OtherFormatError(SnapshotError):
    """A snapshot is of a format that another espha knows: that one may be back."""


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
    since: int = 0
    """Order record behind which the model began with empty state; 0: the first."""


class Header(SnapshotMeta):
    """What a file says of its body, and who made it when."""

    engine: str
    runtime: str
    """Versions of espha, Python and PySpark."""
    made: int
    """Milliseconds since 1970, of the machine that made it."""
    length: int
    digest: str
    """SHA-256 (hex) of the body."""
    state: str
    """SHA-256 (hex) of the state: the same on every replica (`espha.recovery.plain.digest`)."""


class Snapshot(NamedTuple):
    """A header, and where its body lies: in `path`, from `offset` on."""

    header: Header
    path: Path
    offset: int


class Draft(NamedTuple):
    """A snapshot whose body is being written to `path`, from `offset` on."""

    meta: SnapshotMeta
    path: Path
    offset: int


def header_of(meta: SnapshotMeta, body: Written, engine: str, runtime: str, made: int) -> Header:
    """Return the header of a body; `made` is in milliseconds since 1970."""
    return Header(
        **dict(meta),
        engine=engine,
        runtime=runtime,
        made=made,
        length=body.length,
        digest=body.checksum,
        state=body.digest,
    )


def front(header: Header, size: int) -> bytes:
    """Return what stands before a body, in `size` bytes.

    Raises:
        ValueError: the header is longer.
    """
    text = _text(header)
    room = size - len(_MAGIC) - _LENGTH_BYTES - _SUM_BYTES
    if len(text) > room:
        raise ValueError(f"a header of {len(text)} bytes does not fit in {room}")
    before = _MAGIC + room.to_bytes(_LENGTH_BYTES, "big") + text.ljust(room)
    return before + hashlib.sha256(before).digest()


def _text(header: Header) -> bytes:
    # An espha that knows no `since` reads a header without it.
    return header.model_dump_json(exclude=set() if header.since else {"since"}).encode()


def read_header(source: Source) -> Header:
    """Read the part before the body.

    Raises:
        SnapshotError: it is damaged, or of another format.
        OSError: it cannot be read.
    """
    return _read_front(source)[0]


def copy(source: Source, path: Path) -> Snapshot:
    """Write a whole snapshot, as it comes from a source, to a file.

    Raises:
        SnapshotError: it is damaged anywhere, is too large, or of another format.
        OSError: it cannot be read or written.
    """
    with path.open("wb") as file:
        header, offset = verify(source, file.write)
        file.flush()
        os.fsync(file.fileno())
    return Snapshot(header, path, offset)


def check(path: Path) -> Snapshot:
    """Read a whole file, part by part, and return what it is.

    Raises:
        SnapshotError: it is damaged anywhere, is too large, or of another format.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        header, offset = verify(file)
    return Snapshot(header, path, offset)


def verify(
    source: Source, out: Callable[[bytes], object] = lambda part: None
) -> tuple[Header, int]:
    """Read a whole snapshot, part by part; return its header, and where its body begins.

    Args:
        source: where it comes from.
        out: is given all bytes, part by part, before they are known to be whole.

    Raises:
        SnapshotError: it is damaged anywhere, is too large, or of another format.
        OSError: it cannot be read.
    """
    header, before = _read_front(source)
    out(before)
    _check_body(source, header, out)
    return header, len(before)


def _read_front(source: Source) -> tuple[Header, bytes]:
    """Return the header, and all bytes up to the body."""
    magic = _exactly(source, len(_MAGIC))
    if magic != _MAGIC:
        if not magic.startswith(_LEAD):
            raise SnapshotError("it does not begin as a snapshot does")
        other = magic[len(_LEAD) :].strip().decode(errors="replace")
        raise OtherFormatError(f"its format is {other}, not {_VERSION.decode()}")
    length = _exactly(source, _LENGTH_BYTES)
    size = int.from_bytes(length, "big")
    if size > _LONGEST_HEADER:
        raise SnapshotError(f"its header has {size} bytes, more than {_LONGEST_HEADER}")
    header = _exactly(source, size)
    checksum = _exactly(source, _SUM_BYTES)
    before = magic + length + header
    if checksum != hashlib.sha256(before).digest():
        raise SnapshotError("the checksum of its header is wrong")
    try:
        return Header.model_validate_json(header), before + checksum
    except ValidationError as error:
        text = f"its header has {error.error_count()} fields that this espha does not know"
        raise OtherFormatError(text) from None


def _check_body(source: Source, header: Header, out: Callable[[bytes], object]) -> None:
    if not 0 <= header.length <= LARGEST_BODY:
        raise SnapshotError(f"its body has {header.length} bytes, more than {LARGEST_BODY}")
    checksum = hashlib.sha256()
    missing = header.length
    while missing:
        part = source.read(min(missing, _PART))
        if not part:
            raise SnapshotError("it ends too early")
        checksum.update(part)
        out(part)
        missing -= len(part)
    if checksum.hexdigest() != header.digest:
        raise SnapshotError("the checksum of its body is wrong")
    if source.read(1):
        raise SnapshotError("there is something behind its end")


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
    """The folder with an engine's snapshots.

    The newest `keep` of the model that was written last stay, and the newest one of each of the
    models before it, of `_OTHERS` at most: from there a roll-back goes on.
    """

    def __init__(self, folder: Path, keep: int = 3, model: str = "") -> None:
        """Use a folder.

        Args:
            folder: where the snapshots are.
            keep: how many of one model stay.
            model: digest of the model whose snapshots are meant; empty: those of all.
        """
        self.folder, self._keep, self.model = folder, keep, model

    def open(self) -> None:
        """Make the folder ready: it exists, can be written to, and holds nothing unfinished.

        Raises:
            OSError: it cannot be made or written to.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_unfinished()
        probe = self.folder / f"probe{UNFINISHED}"
        probe.write_bytes(b"")
        probe.unlink(missing_ok=True)

    def _remove_unfinished(self, prefix: str = "") -> None:
        for left in self.folder.glob(f"{prefix}*{UNFINISHED}"):
            left.unlink(missing_ok=True)  # whoever writes it may still be about to end

    def of(self, model: str) -> "SnapshotStore":
        """Return the same folder, of which only this model's snapshots are meant."""
        return SnapshotStore(self.folder, self._keep, model)

    def path(self, meta: SnapshotMeta) -> Path:
        """Return the file of a snapshot, there or not.

        That of a deployment's first model is called as an espha expects it that knows no others.
        """
        model = f"-{meta.model[:_MODEL_DIGITS]}" if meta.since else ""
        return self.folder / f"{_PREFIX}{meta.sequence:020d}{model}{_SUFFIX}"

    def files(self, before: int | None = None, at_least: int = 0) -> list[Path]:
        """Return the snapshots' files, newest first.

        Args:
            before: only those of lower sequence.
            at_least: only those of this sequence or a higher one.
        """
        return self._chosen("", before, at_least)

    def last_resort(self, kinds: Collection[str], before: int | None = None) -> list[Path]:
        """Return what is kept for the case that nothing else fits, the last one tried last.

        Args:
            kinds: `DOUBTED`, `DIVERGED`, or both.
            before: only those of lower sequence.
        """
        found = [path for kind in kinds for path in self._chosen(kind, before)]
        return sorted(found, key=_changed)

    def reconsider(self) -> None:
        """Put the one that could not be restored, and was tried longest ago, to use again."""
        for path in self.last_resort([DOUBTED])[:1]:
            with contextlib.suppress(OSError):
                path.replace(path.with_name(path.name.removesuffix(DOUBTED)))

    def _chosen(self, kind: str, before: int | None, at_least: int = 0) -> list[Path]:
        return [
            path
            for sequence, model, path in self._found(kind)
            if sequence >= at_least
            and (before is None or sequence < before)
            and (not self.model or model == self.model[:_MODEL_DIGITS])
        ]

    def _found(self, kind: str = "") -> list[tuple[int, str, Path]]:
        """Return sequence, first digits of the model, and file of all; newest first."""
        found = []
        end = _SUFFIX + kind
        for path in self.folder.glob(f"{_PREFIX}*{end}"):
            sequence, _, model = path.name[len(_PREFIX) : -len(end)].partition("-")
            if sequence.isdecimal():
                found.append((int(sequence), model or _model_of(path), path))
        return sorted(found, reverse=True)

    def draft(self, meta: SnapshotMeta, engine: str, runtime: str) -> Draft:
        """Return where the body of a snapshot is to be written; nothing is there yet."""
        body = Written(LARGEST_BODY, "0" * 64, "0" * 64)
        header = header_of(meta, body, engine, runtime, 1 << 43)
        size = len(_MAGIC) + _LENGTH_BYTES + len(_text(header)) + _SUM_BYTES
        return Draft(meta, _unfinished(self.path(meta)), size)

    def finish(self, draft: Draft, header: Header) -> Path:
        """Make a snapshot of a draft whose body is written and on disk.

        Raises:
            OSError: the volume is full or cannot be written to; nothing has changed.
        """
        path = self.path(header)
        try:
            descriptor = os.open(draft.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                write_all(descriptor, front(header, draft.offset), 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            draft.path.replace(path)
        except OSError:
            self.drop(draft)
            raise
        sync_folder(self.folder)
        with contextlib.suppress(OSError):
            self._remove_unfinished(_PREFIX)  # nobody waits for those any more
        self._remove_old(path, header.model)
        for old in self.of(header.model).last_resort((DOUBTED, DIVERGED)):
            self.set_aside(old)
        return path

    def drop(self, draft: Draft) -> None:
        """Remove what is there of a draft."""
        with contextlib.suppress(OSError):
            draft.path.unlink(missing_ok=True)

    def take_in(self, source: Source, name: str) -> Snapshot:
        """Keep a snapshot that comes from elsewhere, whole or not at all.

        Args:
            source: its file.
            name: of whom it comes; no other one of this name comes at the same time.

        Raises:
            SnapshotError: it is damaged.
            OSError: it cannot be read or written.
        """
        unfinished = _unfinished(self.folder / f"from-{name}")
        try:
            copied = copy(source, unfinished)
            path = self.path(copied.header)
            unfinished.replace(path)
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
        sync_folder(self.folder)
        self._remove_old(path, copied.header.model)
        return copied._replace(path=path)

    def _remove_old(self, new: Path, model: str) -> None:
        """Remove what is too many behind a new snapshot of a model."""
        kept = {model[:_MODEL_DIGITS]: self._keep}
        for _, of, old in self._found():
            if of not in kept:
                kept[of] = 1 if len(kept) <= _OTHERS else 0
            kept[of] -= 1
            if kept[of] < 0 and old != new:
                old.unlink(missing_ok=True)

    def set_aside(self, path: Path, kind: str = REFUSED) -> None:
        """Take a file out of use, until `keep` others of that kind follow.

        Args:
            path: a snapshot, also one that is kept as a last resort.
            kind: `DOUBTED` or `DIVERGED`: it is a last resort until another one of its model is
                written; `REFUSED`: it stays for people to look at.
        """
        name = path.name.removesuffix(DOUBTED).removesuffix(DIVERGED)
        with contextlib.suppress(OSError):
            path.replace(path.with_name(name + kind))
            os.utime(path.with_name(name + kind))
            aside = sorted(self.folder.glob(f"*{kind}"), key=_changed, reverse=True)
            for old in aside[self._keep :]:
                old.unlink(missing_ok=True)


def _model_of(path: Path) -> str:
    """Return the first digits of the model of a file whose name does not say it; "": unknown."""
    try:
        with path.open("rb") as file:
            return read_header(file).model[:_MODEL_DIGITS]
    except (OSError, SnapshotError):
        return ""


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + UNFINISHED)


def _changed(path: Path) -> float:
    return path.stat().st_mtime
