"""Asks over HTTP: the time-out for reading counts for a whole answer, however slowly it comes."""

import http.client
import io
import math
import socket
import time
from typing import TYPE_CHECKING, Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK: Final = 1 << 16


def asker(**options: Any) -> urllib3.PoolManager:
    """Return what asks, with these options of urllib3.

    What comes too slowly raises `ReadTimeoutError`. Each redirect is an answer with its own time.
    """
    made = urllib3.PoolManager(**options)
    made.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return made


def read_body(answer: urllib3.BaseHTTPResponse, most: int) -> bytes | None:
    """Return the body of an answer, expanded; None: it has more than `most` bytes.

    Raises:
        HTTPError: it breaks off, or comes too slowly (urllib3).
    """
    found = bytearray()
    # read() would wait until it has a whole chunk: what is too much is found out sooner.
    while len(found) <= most and (piece := answer.read1(_CHUNK, decode_content=True)):
        found += piece
    return bytes(found) if len(found) <= most else None


class _Timely(io.RawIOBase):
    """What comes on a connection from now on, until the connection's time-out is over."""

    def __init__(self, connection: socket.socket, inner: io.RawIOBase) -> None:
        limit = connection.gettimeout()
        self._until = math.inf if limit is None else time.monotonic() + limit
        self._connection, self._inner = connection, inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer comes too slowly")
        if left < math.inf:
            self._connection.settimeout(left)
        return self._inner.readinto(buffer)

    def close(self) -> None:
        self._inner.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer; its head, too, is read through `fp`."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Timely(sock, self.fp.detach()))


class _Connection(HTTPConnection):
    response_class = _Answer


class _SecureConnection(HTTPSConnection):
    response_class = _Answer


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection
