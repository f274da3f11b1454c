"""Files that are there as a whole or not at all, whatever dies at whatever moment."""

import os
from collections.abc import Iterable
from pathlib import Path

UNFINISHED = ".unfinished"
"""End of the name of a file that is being written."""


def replace_file(path: Path, parts: Iterable[bytes], *, sync_name: bool = True) -> None:
    """Write a file beside, and put it in the place of what was there.

    Args:
        path: the file.
        parts: what it is to hold, one after the other.
        sync_name: also have it on disk, when this returns, that the new file is there; without,
            a crash of the machine may bring back the old one, as a whole.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        _write_new(unfinished, parts)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    if sync_name:
        sync_folder(path.parent)


def write_all(descriptor: int, data: bytes, offset: int) -> int:
    """Write all of `data` at an offset of an open file; return the offset that follows.

    Raises:
        OSError: the file system refuses; a part may be written.
    """
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
    return offset


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk.

    Raises:
        OSError: it cannot be done.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path: Path, parts: Iterable[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        end = 0
        for part in parts:
            end = write_all(descriptor, part, end)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
