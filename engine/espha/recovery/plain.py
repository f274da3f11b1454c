"""Plain data as compressed bytes, and back: the body of a snapshot.

Plain data are None, bool, int, float, str, bytes, and tuples, lists, dicts and sets of them: what
pickle writes without naming a class or a function. Bytes that name one are refused, in writing and
in reading, so what is read can never call code.

The bytes are: size of the pickle (8 bytes, big-endian), then the pickle, compressed with zstd.
Arrow's zstd is several times faster than zlib, and an engine waits while its state is written.
"""

import io
import pickle
from typing import Any, NoReturn

import pyarrow as pa

_SIZE_BYTES = 8
_LARGEST = 1 << 32
_PROTOCOL = 5


class NotPlainError(ValueError):
    """Data that are not plain, or bytes that are not those of plain data; the text says why."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: Any) -> NoReturn:
        raise NotPlainError(f"{type(thing).__module__}.{type(thing).__qualname__} is no plain data")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise NotPlainError(f"it names {module}.{name}, which plain data never do")


def dumps(data: Any) -> bytes:
    """Return plain data as compressed bytes.

    Raises:
        NotPlainError: a part of it is not plain.
    """
    pickled = io.BytesIO()
    _Pickler(pickled, _PROTOCOL).dump(data)
    size = len(pickled.getbuffer())
    packed = pa.Codec("zstd", compression_level=1).compress(pickled.getbuffer(), asbytes=True)
    return size.to_bytes(_SIZE_BYTES, "big") + bytes(packed)


def loads(body: bytes) -> Any:
    """Return what `dumps` was given.

    Raises:
        NotPlainError: the bytes are damaged, are larger than 4 GiB, or name a class or function.
    """
    size = int.from_bytes(body[:_SIZE_BYTES], "big")
    if size > _LARGEST:
        raise NotPlainError(f"it says that it has {size} bytes, more than {_LARGEST}")
    try:
        pickled = pa.Codec("zstd").decompress(body[_SIZE_BYTES:], size, asbytes=True)
        return _Unpickler(io.BytesIO(pickled)).load()
    except NotPlainError:
        raise
    except Exception as error:  # damaged bytes can make pickle raise anything
        raise NotPlainError(f"{type(error).__name__}: {error}") from None
