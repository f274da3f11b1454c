"""What an open file holds: its bytes as they are, or expanded."""

import errno
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from backports import zstd

_RAW: Final = 65_536
_PIECE: Final = 262_144
_GZIP_WINDOW: Final = 31


class Content(Protocol):
    """The bytes of an open file, by their offset."""

    def at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from an offset, fewer only at the present end.

        Raises:
            OSError: they cannot be read, or cannot be expanded.
        """
        ...

    def whole(self) -> bool:
        """Tell whether nothing is known to be missing behind what `at` has returned last."""
        ...

    def stat(self) -> os.stat_result:
        """Return what the file system knows of the file; its size is that on the disk."""
        ...

    def needs(self, offset: int) -> int:
        """Return the bytes on the disk that the content up to an offset has taken."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class _Plain:
    """A file that is as it is."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def at(self, offset: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, offset)

    def whole(self) -> bool:
        return True

    def stat(self) -> os.stat_result:
        return os.fstat(self._descriptor)

    def needs(self, offset: int) -> int:
        return offset

    def close(self) -> None:
        os.close(self._descriptor)


class _Expander(Protocol):
    """What expands one stream; see `zstd.ZstdDecompressor`."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """`zlib`'s object with the interface of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP_WINDOW)
        self._cut = False

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail and not self._cut

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._cut = len(found) == max_length  # the rest of it may be inside
        return found


_KINDS: Final[dict[bytes, Callable[[], _Expander]]] = {
    b"\x1f\x8b\x08": _Gzip,
    b"\x28\xb5\x2f\xfd": zstd.ZstdDecompressor,
}


class _Expanded:
    """A file that is compressed: one stream, or several one after the other.

    It is read forward, with one piece in memory; to go back means to begin again.
    """

    def __init__(self, descriptor: int, expander: Callable[[], _Expander]) -> None:
        self._descriptor, self._new = descriptor, expander
        self._begin()

    def _begin(self) -> None:
        self._expander: _Expander | None = None
        self._raw = 0
        self._piece, self._start = bytearray(), 0
        self._between = True

    def at(self, offset: int, size: int) -> bytes:
        if offset < self._start:
            self._begin()
        while True:
            passed = min(offset - self._start, len(self._piece))
            if passed:
                del self._piece[:passed]
                self._start += passed
            if self._start + len(self._piece) >= offset + size:
                break
            more = self._expand()
            if not more:
                break
            self._piece += more
        begin = offset - self._start
        return bytes(self._piece[begin : begin + size])

    def whole(self) -> bool:
        return self._between

    def stat(self) -> os.stat_result:
        return os.fstat(self._descriptor)

    def needs(self, offset: int) -> int:
        return self._raw

    def close(self) -> None:
        os.close(self._descriptor)

    def _expand(self) -> bytes:
        """Return the next piece; nothing at the present end."""
        while True:
            data = b""
            if self._expander is None or self._expander.eof:
                data = self._expander.unused_data if self._expander else b""
                data = data or self._read()
                self._between = not data
                if not data:
                    return b""
                self._expander = self._new()
            elif self._expander.needs_input:
                data = self._read()
                if not data:
                    return b""
            try:
                found = self._expander.decompress(data, _PIECE)
            except (zlib.error, zstd.ZstdError, EOFError):
                self._begin()
                what = "what is compressed in it is damaged, or not complete yet"
                raise OSError(errno.EILSEQ, what) from None
            if found:
                return found

    def _read(self) -> bytes:
        data = os.pread(self._descriptor, _RAW, self._raw)
        self._raw += len(data)
        return data


def open_content(path: Path) -> Content | None:
    """Open a file; None: what it begins with does not say yet whether it is compressed.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        beginning = os.pread(descriptor, max(map(len, _KINDS)), 0)
    except OSError:
        os.close(descriptor)
        raise
    if any(kind.startswith(beginning) and kind != beginning for kind in _KINDS):
        os.close(descriptor)
        return None
    for kind, expander in _KINDS.items():
        if beginning.startswith(kind):
            return _Expanded(descriptor, expander)
    return _Plain(descriptor)
