"""Plain data as bytes, and back: the body of a snapshot, and what a digest of a state is made of.

Plain data are None, bool, int, float, str, bytes, and tuples, lists and dicts of them (and
`OneByOne`, which is read back as a list): what pickle writes without naming a class or a function
other than `list`. Bytes that name one are refused, in writing and in reading, so what is read can
never call code. A set is refused by nobody, but its order differs from process to process, so no
state may hold one.

Equal data give equal bytes: each thing is written where it stands, as often as it stands there,
whatever objects happen to be shared. So data that hold themselves cannot be written.

The bytes are blocks, each of which is: size of a part of the pickle (4 bytes, big-endian), size of
what follows (4 bytes), and that part, compressed with zstd. They are written and read block by
block: neither ever holds more of them.
"""

import hashlib
import io
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from espha.recovery.body import Source, Written
from espha.windows.shared.one_by_one import OneByOne

_BLOCK = 1 << 18
_SIZE_BYTES = 4
_PROTOCOL = 5


class NotPlainError(ValueError):
    """Data that are not plain, or bytes that are not those of plain data; the text says why."""


def write(data: Any, out: Callable[[bytes], object] | None) -> Written:
    """Write plain data.

    Args:
        data: plain data, which nobody changes meanwhile.
        out: is given the bytes, one part after the other; None: only the digest is wanted.

    Raises:
        NotPlainError: a part of the data is not plain.
    """
    blocks = _Blocks(out)
    pickler = _Pickler(blocks, _PROTOCOL)
    # Without a memo: it would take several times the memory of the data.
    pickler.fast = True
    try:
        pickler.dump(data)
    except (ValueError, RecursionError) as error:
        raise NotPlainError(str(error)) from None
    return blocks.end()


def read(source: Source) -> Any:
    """Return the data of which `write` made the bytes.

    Raises:
        NotPlainError: the bytes are damaged, or name a class or function.
        OSError: the source cannot be read.
    """
    try:
        return _Unpickler(_Unblocked(source)).load()
    except (NotPlainError, OSError):
        raise
    except Exception as error:  # damaged bytes can make pickle raise anything
        raise NotPlainError(f"{type(error).__name__}: {error}") from None


def dumps(data: Any) -> bytes:
    """Return plain data as bytes; see `write`."""
    body = bytearray()
    write(data, body.extend)
    return bytes(body)


def loads(body: bytes) -> Any:
    """Return the data of which `dumps` made the bytes; see `read`.

    Raises:
        NotPlainError: the bytes are damaged, or name a class or function.
    """
    return read(io.BytesIO(body))


def digest(data: Any) -> str:
    """Return SHA-256 (hex) of plain data: the same for equal data.

    Raises:
        NotPlainError: a part of the data is not plain.
    """
    return write(data, None).digest


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is OneByOne:
            return list, (), None, iter(thing)
        if thing is list:
            return NotImplemented
        raise NotPlainError(f"{type(thing).__module__}.{type(thing).__qualname__} is no plain data")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[list[Any]]:
        if (module, name) == ("builtins", "list"):
            return list
        raise NotPlainError(f"it names {module}.{name}, which plain data never do")


class _Blocks:
    """Takes the pickle, and gives blocks."""

    def __init__(self, out: Callable[[bytes], object] | None) -> None:
        self._out = out
        self._codec = pa.Codec("zstd", compression_level=1)
        self._waiting: list[bytes | memoryview] = []
        self._size = self._length = 0
        self._checksum, self._digest = hashlib.sha256(), hashlib.sha256()

    def write(self, part: bytes) -> int:
        """Take a part of the pickle."""
        view = memoryview(part)
        while self._size + len(view) >= _BLOCK:
            cut = _BLOCK - self._size
            self._waiting.append(view[:cut])
            view = view[cut:]
            self._put()
        if view:
            self._waiting.append(view)
            self._size += len(view)
        return len(part)

    def end(self) -> Written:
        """Give the rest."""
        if self._size:
            self._put()
        return Written(self._length, self._checksum.hexdigest(), self._digest.hexdigest())

    def _put(self) -> None:
        block = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        self._digest.update(block)
        if self._out is None:
            return
        packed = self._codec.compress(block, asbytes=True)
        sizes = len(block).to_bytes(_SIZE_BYTES, "big") + len(packed).to_bytes(_SIZE_BYTES, "big")
        for part in (sizes, packed):
            self._checksum.update(part)
            self._length += len(part)
            self._out(part)


class _Unblocked:
    """Takes blocks, and gives the pickle, as a file that `pickle` reads."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._codec = pa.Codec("zstd")
        self._block = io.BytesIO()

    def read(self, size: int) -> bytes:
        """Return so many bytes; less at the end."""
        found = self._block.read(size)
        if len(found) == size:
            return found
        parts = [found]
        missing = size - len(found)
        while missing and self._next():
            parts.append(self._block.read(missing))
            missing -= len(parts[-1])
        return b"".join(parts)

    def readline(self) -> bytes:
        """Return the rest of a line, which no pickle of plain data has."""
        raise NotPlainError("it has a line of text, which plain data never have")

    def _next(self) -> bool:
        sizes = self._some(2 * _SIZE_BYTES)
        if not sizes:
            return False
        size = int.from_bytes(sizes[:_SIZE_BYTES], "big")
        packed = int.from_bytes(sizes[_SIZE_BYTES:], "big")
        if len(sizes) < 2 * _SIZE_BYTES or not 0 < size <= _BLOCK or packed > 2 * _BLOCK:
            raise NotPlainError("it has a block that nobody has written")
        rest = self._some(packed)
        try:
            block = self._codec.decompress(rest, decompressed_size=size, asbytes=True)
        except OSError as error:  # that is how pyarrow says it
            raise NotPlainError(str(error)) from None
        self._block = io.BytesIO(block)
        return True

    def _some(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size and (part := self._source.read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
