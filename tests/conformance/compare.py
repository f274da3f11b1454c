"""What left a window beside what is documented."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from conformance.expected import ExpectedWindow

Row = Sequence[str]
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?Z?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SHOWN = 12
"""Rows of a difference that are told."""


@dataclass(frozen=True)
class Difference:
    """One window that gives something else than what is documented.

    Attributes:
        window: the window.
        text: what was expected and what came, row by row.
        cause: the named cause, when one is known.
    """

    window: str
    text: str
    cause: str


def compare(expected: ExpectedWindow, tables: dict[str, list[list[str]]]) -> Difference | None:
    """Return how a window differs from what is documented; None: it does not."""
    paths = [path for path in tables if path == expected.name or path.endswith(f"/{expected.name}")]
    if not paths:
        return Difference(expected.name, "there is no such window", expected.difference)
    text = _difference(expected, tables[paths[0]], tables)
    return Difference(expected.name, text, expected.difference) if text else None


def _difference(
    expected: ExpectedWindow, table: list[list[str]], tables: dict[str, list[list[str]]]
) -> str:
    rows = table[1:]
    if expected.total is not None and len(rows) != expected.total:
        return f"expected {expected.total} events, got {len(rows)}\n" + _told([], rows)
    if expected.keeps is not None:
        return _kept(expected, table, tables)
    if not expected.header:
        return ""
    missing = [name for name in expected.header if name not in table[0]]
    if missing:
        return f"the window has no column {', '.join(missing)}"
    if expected.match == "state":
        rows = _left(rows, [table[0].index(name) for name in expected.keys])
    places = [table[0].index(name) for name in expected.header]
    actual = [[row[place] for place in places] for row in rows]
    if _matches(expected, actual):
        return ""
    return _told(expected.rows, actual)


def _left(rows: list[list[str]], keys: list[int]) -> list[list[str]]:
    """Return the rows that a window holds after these events."""
    found: dict[tuple[str, ...], list[str]] = {}
    updated = None
    for row in rows:
        key = tuple(row[place].strip() for place in keys)
        if row[0] != "D":
            found[key] = row
        elif updated != key:  # the old row of an update block follows the new one
            found.pop(key, None)
        updated = key if row[0] == "U" else None
    return list(found.values())


def _matches(expected: ExpectedWindow, actual: list[list[str]]) -> bool:
    wanted = expected.rows

    def same(one: Sequence[Row], other: Sequence[Row]) -> bool:
        return len(one) == len(other) and all(
            _same_row(a, b, expected.digits) for a, b in zip(one, other, strict=True)
        )

    if expected.match == "all":
        return same(wanted, actual)
    if expected.match == "first":
        return same(wanted, actual[: len(wanted)])
    if expected.match == "last":
        return same(wanted, actual[-len(wanted) :])
    if expected.match == "run":
        return any(same(wanted, actual[at : at + len(wanted)]) for at in range(len(actual)))
    if expected.match == "some":
        left = iter(actual)
        return all(any(_same_row(row, one, expected.digits) for one in left) for row in wanted)
    return len(wanted) == len(actual) and _pairs(wanted, actual, expected.digits)


def _pairs(wanted: list[list[str]], actual: list[list[str]], digits: int) -> bool:
    left = list(actual)
    for row in wanted:
        found = next((one for one in left if _same_row(row, one, digits)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _same_row(wanted: Row, actual: Row, digits: int) -> bool:
    return len(wanted) == len(actual) and all(
        same_cell(one, other, digits) for one, other in zip(wanted, actual, strict=True)
    )


def same_cell(wanted: str, actual: str, digits: int) -> bool:
    """Say whether a cell is what is documented, as exactly as it is shown there."""
    actual = _readable(actual.strip()) if _DAY.match(wanted) else actual.strip()
    if wanted in {"*", actual}:
        return True
    if wanted.endswith("…"):
        return actual.startswith(wanted[:-1])
    try:
        one, other = float(wanted), float(actual)
    except ValueError:
        return _moment(wanted) == _moment(actual) != ""
    if "e" in wanted.lower() and "e" in actual.lower():
        return abs(one - other) <= abs(one) * 1e-5
    tolerance: float = max(0.5005 * float(f"1e-{digits}"), abs(one) * 1e-9)
    return abs(one - other) <= tolerance


def _moment(text: str) -> str:
    found = _DATE.fullmatch(text)
    return f"{found[1]} {found[2]}.{(found[3] or '').rstrip('0')}" if found else ""


def _readable(actual: str) -> str:
    """Return a moment that is written as a number as a date: seconds, or micros of a stamp."""
    if not actual.lstrip("-").isdigit():
        return actual
    number = int(actual)
    micros = number if abs(number) > 10**12 else number * 1_000_000
    moment = datetime.fromtimestamp(micros // 1_000_000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{micros % 1_000_000:06}"


def _kept(
    expected: ExpectedWindow, table: list[list[str]], tables: dict[str, list[list[str]]]
) -> str:
    rule = expected.keeps
    assert rule is not None
    source = next(rows for path, rows in tables.items() if path.endswith(f"/{rule.window}"))
    place = source[0].index(rule.column)
    wanted = [row[2:] for row in source[1:] if float(row[place] or "nan") > rule.above]
    actual = [row[2:] for row in table[1:]]
    if not source[1:]:
        return f"nothing came from {rule.window}"
    return "" if wanted == actual else _told(wanted, actual)


def _told(wanted: Sequence[Row], actual: Sequence[Row]) -> str:
    lines = []
    for name, rows in (("expected", wanted), ("got", actual)):
        if not rows and name == "expected":
            continue
        more = f" … and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        lines += [f"{name} ({len(rows)} rows):", *("  " + ",".join(r) for r in rows[:_SHOWN])]
        if more:
            lines.append(more)
    return "\n".join(lines)
