"""Output records that are larger than a topic takes: dead letters with what is left of them.

What is left is a function of the record alone, so that all replicas agree. An engine that tried to
write the whole would end, and so would each that takes over from it.

Of a record that is set aside no more than that is left in any case: perhaps it was its own dead
letter that a topic did not take.
"""

import hashlib

from espha.protocol.records import (
    DIGEST_HEADER,
    OUTPUT_REASON,
    REASON_HEADER,
    SIZE_HEADER,
    WINDOW_HEADER,
    Headers,
)
from espha.protocol.sizes import CUT_BYTES, RECORD_BYTES

REASON_BYTES = 1024
"""What is left of a reason, where its dead letter is too large."""


def fits(value: bytes, headers: Headers) -> bool:
    """Tell whether a record can be written as it is."""
    return size_of(value, headers) <= RECORD_BYTES


def size_of(value: bytes, headers: Headers) -> int:
    """Return the size of a record: its value, and the names and values of its headers."""
    return len(value) + sum(len(name.encode()) + len(text) for name, text in headers)


def dead_letter_of(value: bytes, headers: Headers, window: str) -> tuple[bytes, Headers]:
    """Return value and headers of the dead letter that stands for an output of `window`."""
    reason = (
        f"{OUTPUT_REASON}{size_of(value, headers)} bytes, {RECORD_BYTES} at most can be written"
    )
    named = (*headers, (WINDOW_HEADER, window.encode()), (REASON_HEADER, reason.encode()))
    return _cut(value, named)


def shortened(value: bytes, headers: Headers) -> tuple[bytes, Headers]:
    """Return what is left of a dead letter: the beginnings of its value and of its reason."""
    short = [
        (name, text[:REASON_BYTES] if name == REASON_HEADER else text) for name, text in headers
    ]
    return _cut(value, tuple(short))


def _cut(value: bytes, headers: Headers) -> tuple[bytes, Headers]:
    size, digest = str(len(value)).encode(), hashlib.sha256(value).hexdigest().encode()
    return value[:CUT_BYTES], (*headers, (SIZE_HEADER, size), (DIGEST_HEADER, digest))
