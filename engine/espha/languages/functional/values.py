"""The values of the function language, and how one becomes another.

Null is None. Numbers are int (64 bits) and float (finite), texts are str. Conditions give 1 or 0;
`true` and `false` of JSON are bool, so that they can become `true` as a text and 1 as a number.
Documents and collections (an XML element, a JSON array or object, a list, set or map property)
live as long as the event.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from lxml import etree

from espha.model.events import BadRecord
from espha.model.literals import (
    MICROS,
    MICROSECOND,
    double_from,
    finite,
    number_text,
    ticks_since_epoch,
    whole,
    whole_from,
)

MAX_TEXT: Final = 1024 * 1024
"""Longest text that a function makes or a document is read from, in characters."""


class Pairs(dict[str, Any]):
    """A map property; as a text, or where a document is wanted, it is what it was made of."""

    def __init__(self, pairs: Mapping[str, Any], source: str) -> None:
        super().__init__(pairs)
        self.source = source


def text(value: Any) -> str | None:
    """Return the value as a text; a whole double has no fraction, an object is JSON or XML."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    return bounded(_document_text(value))


def _document_text(value: Any) -> str:
    if isinstance(value, Pairs):
        return value.source
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, etree._Element):
        return etree.tostring(value, encoding="unicode", with_tail=False)
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    if isinstance(value, tuple):
        if all(isinstance(part, str) for part in value):
            return ",".join(value)
        return "[" + ";".join(text(part) or "" for part in value) + "]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def bounded(value: str) -> str:
    """Return the text.

    Raises:
        BadRecord: it is longer than `MAX_TEXT`; functions can double a text again and again.
    """
    if len(value) > MAX_TEXT:
        raise BadRecord(f"a function made a text of {len(value)} characters; at most {MAX_TEXT}")
    return value


def number(value: Any) -> int | float | None:
    """Return the value as a number; null when it is none."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value
    return _parsed(value.strip()) if isinstance(value, str) else None


def _parsed(value: str) -> int | float | None:
    found = whole_from(value)
    if found is not None:
        return whole(found)
    double_ = double_from(value)
    return None if double_ is None else finite(double_)


def settled(value: int | float) -> int | float | None:
    """Return a result of arithmetic; null when it has no place in 64 bits."""
    return whole(value) if isinstance(value, int) else finite(value)


def integer(value: Any) -> int | None:
    """Return the value as a whole number of 64 bits, without its fraction."""
    found = number(value)
    if found is None:
        return None
    return whole(int(found))


def double(value: Any) -> float | None:
    """Return the value as a double."""
    found = number(value)
    return None if found is None else float(found)


def truth(value: Any) -> bool:
    """Say whether a condition holds.

    Null, zero, an empty text, `false` and texts that are the number zero are false.
    """
    if value is None or isinstance(value, int | float):
        return bool(value)
    if not isinstance(value, str):
        return True
    found = number(value)
    if found is not None:
        return bool(found)
    return value.strip().lower() not in {"", "false"}


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1: as numbers when both are numbers, as texts otherwise; null comes first."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    first, second = number(left), number(right)
    if first is not None and second is not None:
        return (first > second) - (first < second)
    one, two = text(left) or "", text(right) or ""
    return (one > two) - (one < two)


def equal(left: Any, right: Any) -> bool:
    """Say whether two values are the same; two texts are compared as texts, `007` is not `7`."""
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return compare(left, right) == 0


def seconds_of(value: str) -> tuple[int, int] | None:
    """Read ISO 8601 (UTC without a zone) as (seconds, microseconds) since 1970."""
    try:
        moment = datetime.fromisoformat(value.strip())
        micros = ticks_since_epoch(moment, MICROSECOND)
    except (ValueError, OverflowError):
        return None
    return divmod(micros, MICROS)
