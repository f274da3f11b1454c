"""A small disk that a fault can fill up."""

import contextlib
import errno
import os
import subprocess
from pathlib import Path

_SIZE_MB = 1


def possible() -> bool:
    """Tell whether this process may mount file systems."""
    return os.geteuid() == 0


class SmallDisk:
    """A file system of one megabyte, in memory, at a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._filler = folder, folder / "filler"
        options = ["-t", "tmpfs", "-o", f"size={_SIZE_MB}m,mode=0755"]
        subprocess.run(["mount", *options, "espha-chaos", str(folder)], check=True)

    def fill(self) -> None:
        """Leave no byte free."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (65536, 512, 1):
                with contextlib.suppress(OSError):
                    while True:
                        self._write(file.fileno(), size)

    def _write(self, descriptor: int, size: int) -> None:
        if os.write(descriptor, b"x" * size) < size:
            raise OSError(errno.ENOSPC, "full")

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)

    def unmount(self) -> None:
        """Take the disk away, whoever still uses it."""
        subprocess.run(["umount", "-l", str(self._folder)], check=False, capture_output=True)
