"""A file that grows and is rotated in each way that log rotation knows."""

import gzip
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from support.peers import Row


class RotatedFile:
    """Numbered rows, each written in two pieces, into a file that is rotated now and then."""

    def __init__(self, path: Path, row: Row, seed: int) -> None:
        self.path, self._row = path, row
        self._chance = random.Random(seed)
        self._file = path.open("ab", buffering=0)
        self.sent = 0
        self.kinds: tuple[Callable[[], None], ...] = (
            self.rename_with_late_writer, self.copy_and_truncate, self.rename_and_compress
        )  # fmt: skip
        self.rotations = 0

    def send(self, until: int) -> None:
        """Append all rows below a number that are not written yet."""
        for number in range(self.sent, until):
            line = f"{self._row(number)}\n".encode()
            cut = self._chance.randint(0, len(line))
            self._file.write(line[:cut])
            self._file.write(line[cut:])
        self.sent = max(self.sent, until)

    def rotate(self) -> None:
        """Rotate, in each way in turn."""
        self._make_room()
        self.kinds[self.rotations % len(self.kinds)]()
        self.rotations += 1

    def rename_with_late_writer(self) -> None:
        """A program that still has the old file open writes one more row into it."""
        self.path.rename(self._rotated(1))
        self.send(self.sent + 1)
        self._reopen()

    def copy_and_truncate(self) -> None:
        """The program goes on in the same file."""
        shutil.copyfile(self.path, self._rotated(1))
        os.truncate(self.path, 0)

    def rename_and_compress(self) -> None:
        """Nothing of the old file is left but what gzip made of it."""
        old = self._rotated(1)
        self.path.rename(old)
        self._reopen()
        with old.open("rb") as plain, gzip.open(f"{old}.part", "wb") as packed:
            shutil.copyfileobj(plain, packed)
        Path(f"{old}.part").rename(f"{old}.gz")
        old.unlink()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _reopen(self) -> None:
        self._file.close()
        self._file = self.path.open("ab", buffering=0)

    def _make_room(self) -> None:
        """Give all rotated files the next number; none is removed, however late its reader is."""
        for number in range(self.rotations, 0, -1):
            for ending in ("", ".gz"):
                old = Path(f"{self._rotated(number)}{ending}")
                if old.exists():
                    old.rename(f"{self._rotated(number + 1)}{ending}")

    def _rotated(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


class Folder:
    """Files of a folder, each of which is moved there when it is whole."""

    ROWS = 500

    def __init__(self, path: Path, row: Row) -> None:
        path.mkdir()
        self._path, self._row = path, row
        self.sent = 0

    def send(self, until: int) -> None:
        """Make a file of all rows that are not there yet, once they are worth one."""
        if until - self.sent >= self.ROWS:
            part = self._path / "next.part"
            lines = (f"{self._row(number)}\n" for number in range(self.sent, until))
            part.write_text("".join(lines))
            part.rename(self._path / f"rows-{self.sent:012}.csv")
            self.sent = until
