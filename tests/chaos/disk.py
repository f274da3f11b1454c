"""Disks that fail: they fill up, hang, or forget what they were not told to keep."""

import contextlib
import errno
import fcntl
import os
import struct
import subprocess
from pathlib import Path

_SIZE_MB = 1
_IMAGE_MB = 2048
"""A file with holes: it takes what is written."""
_BLOCK = 4096
_SHUT_DOWN = 0x8004587D
"""FS_IOC_SHUTDOWN, which ext4 and XFS have for tests like this one."""
_FREEZE, _THAW = 0xC0045877, 0xC0045878
"""FIFREEZE and FITHAW: who writes meanwhile waits, and no signal ends it."""
_AS_IT_IS = struct.pack("I", 2)
"""Without writing anything any more, the journal neither."""


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
        _unmount(self._folder, "-l")


class RealDisk:
    """A file system (ext4) at a folder, which fills up, hangs, or loses its power.

    What is not synced is gone then.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._image = folder, folder.with_suffix(".ext4")
        self._filler = folder / "filler"
        folder.mkdir(parents=True, exist_ok=True)
        with self._image.open("wb") as file:
            file.truncate(_IMAGE_MB << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True)
        self.on()
        (folder / "lost+found").rmdir()

    def fill(self) -> None:
        """Leave no block free."""
        with self._filler.open("wb") as file:
            size, at = _IMAGE_MB << 20, 0
            while size >= _BLOCK:
                try:
                    os.posix_fallocate(file.fileno(), at, size)
                    at += size
                except OSError:
                    size //= 2

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)

    def cut(self) -> None:
        """Let nothing more be written, of what is in memory neither."""
        self._tell(_SHUT_DOWN, _AS_IT_IS)

    def hang(self) -> None:
        """Let everybody wait who writes."""
        self._tell(_FREEZE)

    def go_on(self) -> None:
        """Let what waits be written."""
        self._tell(_THAW)

    def _tell(self, request: int, argument: bytes = b"") -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, request, argument)
        finally:
            os.close(descriptor)

    def off(self) -> None:
        """Take it away, when nobody uses it any more."""
        _unmount(self._folder)

    def on(self) -> None:
        """Mount it with what is there."""
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self._folder)], check=True)

    def discard(self) -> None:
        """Take it away, whoever still uses it, with all that is on it."""
        _unmount(self._folder, "-l")
        self._image.unlink()


def _unmount(folder: Path, *options: str) -> None:
    subprocess.run(["umount", *options, str(folder)], check=not options, capture_output=True)
