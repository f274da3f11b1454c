"""A digest of input records: whoever reads a range of a topic can tell that it has all of it."""

import hashlib
import struct
from collections.abc import Iterable

from espha.pipeline.job import Input

_HEAD = struct.Struct(">qI")


def inputs_digest(inputs: Iterable[Input]) -> str:
    """Return SHA-256 (hex) over topic, offset and value of each record, in order.

    A topic is its length (4 bytes, big-endian) and its name in UTF-8; then come the offset (8), the
    value's length (4) and the value.
    """
    topics: dict[str, bytes] = {}
    parts: list[bytes] = []
    for topic, offset, value in inputs:
        name = topics.get(topic)
        if name is None:
            encoded = topic.encode()
            name = topics[topic] = len(encoded).to_bytes(4, "big") + encoded
        parts += (name, _HEAD.pack(offset, len(value)), value)
    return hashlib.sha256(b"".join(parts)).hexdigest()
