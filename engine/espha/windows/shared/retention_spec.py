"""Retention: when a window lets go of its rows by itself.

<retention type="bycount_sliding">10</retention>
<retention type="bytime_jumping" field="when" unit="minutes">5</retention>
<retention type="bytime_sliding">30 seconds</retention>
"""

import re
from collections.abc import Sequence
from typing import Final

from lxml import etree

from espha.model.problems import Findings
from espha.model.project import Field, Retention
from espha.model.xml import attributes, children, only_child, text_of

TYPES: Final = ("bytime_sliding", "bytime_jumping", "bycount_sliding", "bycount_jumping")
TIME_TYPES: Final = frozenset({"date", "stamp"})
MAX_ROWS: Final = 1_000_000_000
MAX_MILLISECONDS: Final = 100 * 366 * 86_400_000
"""A century; more is a mistake in the unit."""

_MICROSECONDS: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT: Final = {
    "usec": "microsecond", "us": "microsecond", "msec": "millisecond", "ms": "millisecond",
    "sec": "second", "s": "second", "min": "minute", "m": "minute", "hr": "hour", "h": "hour",
    "d": "day",
}  # fmt: skip
_AMOUNT = re.compile(r"([0-9]{1,18})\s*([A-Za-z]*)")


def read_retention(
    window: etree._Element,
    fields: Sequence[Field],
    index: str,
    findings: Findings,
    *,
    why_not: str = "",
) -> Retention | None:
    """Read the `<retention>` of a window.

    Args:
        window: the window's element.
        fields: schema of the window.
        index: its index; a window that keeps no rows cannot let go of any.
        findings: where problems go.
        why_not: why windows of its type have no retention; empty: they can have one.

    Returns:
        The retention; None when there is none, or one with problems.
    """
    element = only_child(window, "retention", findings)
    if element is None:
        return None
    if why_not:
        findings.refuse(element, why_not)
        return None
    before = len(findings.problems)
    attributes(element, frozenset({"type", "field", "unit"}), findings)
    list(children(element, frozenset(), findings))
    if index == "pi_EMPTY":
        findings.refuse(element, "a window with pi_EMPTY keeps no rows; give it another index")
    kind = element.get("type", "").strip()
    if kind not in TYPES:
        findings.refuse(element, f"type {kind!r} is not one of: {', '.join(TYPES)}")
        return None
    by_time = kind.startswith("bytime")
    amount = _duration(element, findings) if by_time else _count(element, findings)
    field = _field(element, by_time, fields, findings)
    if len(findings.problems) > before:
        return None
    return Retention(
        by="time" if by_time else "count",
        jumping=kind.endswith("jumping"),
        amount=amount,
        field=field,
    )


def _count(element: etree._Element, findings: Findings) -> int:
    match = _AMOUNT.fullmatch(text_of(element))
    if match is None or match[2] or not 1 <= int(match[1]) <= MAX_ROWS:
        reason = f"{text_of(element)!r} is not a number of rows; give a whole number from 1"
        findings.refuse(element, reason)
        return 0
    if element.get("unit"):
        findings.warn(element, "unit has no effect on a retention by count")
    return int(match[1])


def _duration(element: etree._Element, findings: Findings) -> int:
    match = _AMOUNT.fullmatch(text_of(element))
    if match is None:
        reason = f"{text_of(element)!r} is not a length of time, such as 30 seconds"
        findings.refuse(element, reason)
        return 0
    # A unit beside the number takes precedence over the attribute.
    word = (match[2] or element.get("unit", "").strip() or "seconds").lower()
    unit = _MICROSECONDS.get(_SHORT.get(word, word.removesuffix("s")))
    if unit is None:
        known = ", ".join(f"{name}s" for name in _MICROSECONDS)
        findings.refuse(element, f"unit {word!r} is not one of: {known}")
        return 0
    whole, rest = divmod(int(match[1]) * unit, 1_000)
    if rest or not 1 <= whole <= MAX_MILLISECONDS:
        reason = f"{match[1]} {word} is not 1 millisecond to 100 years in whole milliseconds"
        findings.refuse(element, reason)
    return whole


def _field(
    element: etree._Element, by_time: bool, fields: Sequence[Field], findings: Findings
) -> str:
    name = element.get("field", "").strip()
    if not name:
        return ""
    if not by_time:
        findings.warn(element, "field has no effect on a retention by count")
        return ""
    types = {field.name: field.type for field in fields}
    if name not in types:
        findings.refuse(element, f"{name!r} is not a field of the window")
    elif types[name] not in TIME_TYPES:
        findings.refuse(
            element, f"field {name!r} is {types[name]}; a time must be a date or a stamp"
        )
    return name
