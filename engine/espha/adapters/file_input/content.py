"""What an open file holds: its bytes as they are, or expanded, and always in UTF-8."""

import errno
import os
import stat
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from backports import zstd

from espha.adapters.config import ConfigError
from espha.adapters.formats.encodings import (
    UTF_8,
    Transcoder,
    decoder,
    mark_size,
    of_beginning,
    pending,
    to_utf8,
)

_RAW: Final = 65_536
_PIECE: Final = 262_144
_GZIP_WINDOW: Final = 31
_FAR: Final = 2**63

Moved = Callable[[], None]
"""Is called with each piece that was read: whoever waits for much of a file waits for long."""


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

    def again(self) -> bool:
        """Tell whether what was read can be read once more without reading all before it."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class _Plain:
    """A file that is as it is."""

    def __init__(self, descriptor: int, moved: Moved) -> None:
        self._descriptor, self._moved = descriptor, moved

    def at(self, offset: int, size: int) -> bytes:
        found = os.pread(self._descriptor, size, offset)
        self._moved()
        return found

    def whole(self) -> bool:
        return True

    def stat(self) -> os.stat_result:
        return os.fstat(self._descriptor)

    def needs(self, offset: int) -> int:
        return offset

    def again(self) -> bool:
        return True

    def close(self) -> None:
        os.close(self._descriptor)


class _Encoded:
    """A file of another encoding; offsets are those of its text in UTF-8.

    It remembers where characters begin, now and then, so that it can be read from any place.
    """

    def __init__(self, inner: Content, encoding: str) -> None:
        self._inner, self._encoding = inner, encoding
        self._order = ""
        self._marks = [(0, 0)]
        self._asked = (0, 0)
        self._whole = True

    def at(self, offset: int, size: int) -> bytes:
        found = bytearray()
        place, raw = self._mark_before(offset)
        while place < offset + size:
            _, text, used, rest = self._piece(raw, offset + size - place)
            self._whole = not rest
            if not used:
                break
            found += text[max(0, offset - place) :]
            place, raw = place + len(text), raw + used
            self._remember(place, raw)
        return bytes(found[:size])

    def whole(self) -> bool:
        return self._whole and self._inner.whole()

    def stat(self) -> os.stat_result:
        return self._inner.stat()

    def needs(self, offset: int) -> int:
        if self._asked[0] == offset:
            return self._asked[1]
        raw = self._raw_of(offset)
        if raw is None:
            return self.stat().st_size + 1
        self._asked = offset, raw
        return raw

    def again(self) -> bool:
        return True

    def close(self) -> None:
        self._inner.close()

    def _raw_of(self, offset: int) -> int | None:
        """Return the bytes for the text up to an offset; None: there is not so much."""
        place, raw = self._mark_before(offset)
        while place < offset:
            data, text, used, _ = self._piece(raw, offset - place)
            if not used:
                return None
            if place + len(text) > offset:

                def reached(end: int, data: bytes = data, place: int = place) -> int:
                    return place + len(to_utf8(decoder(self._order).decode(data[:end])))

                return raw + bisect_left(range(used + 1), offset, key=reached)
            place, raw = place + len(text), raw + used
            self._remember(place, raw)
        return raw

    def _piece(self, raw: int, size: int) -> tuple[bytes, bytes, int, int]:
        """Return bytes from a place on, their text, how many it takes, and the rest at the end."""
        if not self._order:
            beginning = self._inner.at(0, mark_size(self._encoding))
            if len(beginning) < mark_size(self._encoding):
                return b"", b"", 0, len(beginning)
            self._order = of_beginning(self._encoding, beginning)
        asked = min(_RAW, 4 * size + 4)
        data = self._inner.at(raw, asked)
        decoding = decoder(self._order)
        text = to_utf8(decoding.decode(data))
        rest = pending(decoding)
        return data, text, len(data) - rest, rest if len(data) < asked else 0

    def _mark_before(self, offset: int) -> tuple[int, int]:
        if self._marks[0][0] < self._asked[0] <= offset <= self._asked[0] + _RAW:
            return self._asked
        return self._marks[bisect_right(self._marks, (offset, _FAR)) - 1]

    def _remember(self, place: int, raw: int) -> None:
        if place - self._marks[-1][0] >= _RAW:
            self._marks.append((place, raw))


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

    def __init__(
        self, descriptor: int, expander: Callable[[], _Expander], encoding: str, moved: Moved
    ) -> None:
        self._descriptor, self._new, self._encoding = descriptor, expander, encoding
        self._moved = moved
        self._begin()

    def _begin(self) -> None:
        self._expander: _Expander | None = None
        self._raw = 0
        self._piece, self._start = bytearray(), 0
        self._between = True
        self._transcoder = None if self._encoding == UTF_8 else Transcoder(self._encoding)

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
            self._piece += self._transcoder.feed(more) if self._transcoder else more
        begin = offset - self._start
        return bytes(self._piece[begin : begin + size])

    def whole(self) -> bool:
        return self._between and not (self._transcoder and self._transcoder.waiting)

    def stat(self) -> os.stat_result:
        return os.fstat(self._descriptor)

    def needs(self, offset: int) -> int:
        return self._raw

    def again(self) -> bool:
        return False

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
        self._moved()
        self._raw += len(data)
        return data


def open_content(path: Path, encoding: str = UTF_8, moved: Moved = lambda: None) -> Content | None:
    """Open a file; None: what it begins with does not say yet whether it is compressed.

    Args:
        path: of the file.
        encoding: of its text, when it is expanded.
        moved: is told of each piece.

    Raises:
        ConfigError: it is a pipe or a device.
        OSError: it is not there, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)
        beginning = os.pread(descriptor, max(map(len, _KINDS)), 0)
    except BaseException:
        os.close(descriptor)
        raise
    if any(kind.startswith(beginning) and kind != beginning for kind in _KINDS):
        os.close(descriptor)
        return None
    for kind, expander in _KINDS.items():
        if beginning.startswith(kind):
            return _Expanded(descriptor, expander, encoding, moved)
    plain = _Plain(descriptor, moved)
    return plain if encoding == UTF_8 else _Encoded(plain, encoding)


def _check_kind(path: Path, mode: int) -> None:
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        raise ConfigError(
            f"{path} is a pipe or a device, and cannot be read on from a position: pipe it into "
            "`espha adapter send`"
        )
