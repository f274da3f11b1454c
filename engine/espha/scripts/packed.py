"""Values that leave a script, as bytes: `project.lua` writes and reads the same form."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from espha.scripts.common import ScriptError

MOST_DEEP: Final = 100

Packable = None | bool | int | float | str | bytes | Sequence[Any] | Mapping[Any, Any]


def packed(value: Packable, deep: int = 0) -> bytes:
    """Return a value as bytes; a list counts from 1, what is null is left out of tables."""
    if deep > MOST_DEEP:
        raise ScriptError(f"a value is nested deeper than {MOST_DEEP}")
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if isinstance(value, int):
        return struct.pack("<cq", b"i", value)
    if isinstance(value, float):
        return struct.pack("<cd", b"d", value)
    if isinstance(value, str | bytes):
        text = value.encode() if isinstance(value, str) else value
        return struct.pack("<cI", b"s", len(text)) + text
    entries = value.items() if isinstance(value, Mapping) else enumerate(value, 1)
    parts = [
        packed(key, deep) + packed(part, deep + 1) for key, part in entries if part is not None
    ]
    return struct.pack("<cI", b"t", len(parts)) + b"".join(parts)


def unpacked(data: bytes) -> Any:
    """Return the value; texts are bytes, and a table is a dict."""
    value, _ = _taken(data, 0)
    return value


def _taken(data: bytes, at: int) -> tuple[Any, int]:
    kind = data[at : at + 1]
    at += 1
    if kind in b"nTF":
        return {b"n": None, b"T": True, b"F": False}[kind], at
    if kind in b"id":
        (number,) = struct.unpack_from("<q" if kind == b"i" else "<d", data, at)
        return number, at + 8
    (size,) = struct.unpack_from("<I", data, at)
    at += 4
    if kind == b"s":
        return data[at : at + size], at + size
    table: dict[Any, Any] = {}
    for _ in range(size):
        key, at = _taken(data, at)
        table[key], at = _taken(data, at)
    return table, at


def listed(table: Any) -> list[Any]:
    """Return the entries of a table that counts from 1, in order."""
    if not isinstance(table, dict):
        return []
    found: list[Any] = []
    while len(found) + 1 in table:
        found.append(table[len(found) + 1])
    return found
