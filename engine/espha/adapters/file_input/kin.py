"""Files that were the file: where rotation has put it, and what followed."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_AT_MOST: Final = 1000
_COUNTED: Final = 4
"""A number of so many digits at most counts up with age; a longer one is a date."""


class Kin(NamedTuple):
    """A file with a name that rotation gives, such as `in.csv.1` or `in-20261123.csv.gz`."""

    path: Path
    inode: int
    age: tuple[int, int, str]
    """The lower, the older."""


def rotated(path: Path) -> list[Kin]:
    """Return the files that rotation has made of `path`, the oldest first.

    Raises:
        OSError: the folder cannot be read.
    """
    found = []
    for entry in _files(path.parent):
        number = _suffix(path, entry.name)
        if number is not None:
            with contextlib.suppress(FileNotFoundError):
                found.append(Kin(Path(entry.path), entry.inode(), _age(number)))
    return sorted(found, key=lambda kin: kin.age)[-_AT_MOST:]


def with_inode(path: Path, inode: int) -> list[Path]:
    """Return the files beside `path` that have this number.

    Raises:
        OSError: the folder cannot be read.
    """
    return [Path(entry.path) for entry in _files(path.parent) if entry.inode() == inode]


def _files(folder: Path) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file():
                        yield entry
    except FileNotFoundError:
        return


def _suffix(path: Path, name: str) -> str | None:
    """Return what rotation has put into a name; None: it is none of its names."""
    number, packed = r"[.-](\d[\d.:_T-]*)", r"(?:\.gz|\.zst)?"
    behind = rf"{re.escape(path.name)}{number}{packed}"
    within = rf"{re.escape(path.stem)}{number}{re.escape(path.suffix)}{packed}"
    match = re.fullmatch(behind, name) or (re.fullmatch(within, name) if path.suffix else None)
    return match[1] if match else None


def _age(number: str) -> tuple[int, int, str]:
    if number.isdigit() and len(number) <= _COUNTED:
        return 1, -int(number), ""
    return 0, 0, number
