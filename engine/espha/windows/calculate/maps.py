"""Which fields a map of a calculate window names: `a`, `a,b,c`, or parts of an array, `a[1-20]`."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_ELEMENTS: Final = 100_000
"""Most elements of an array that a map can name."""

_PLACE = re.compile(
    r"(?P<field>[^\[\]]+?)\s*(?:\[\s*(?P<first>[0-9]{1,6})\s*(?:-\s*(?P<last>[0-9]{1,6})\s*)?\])?"
)


class Slot(NamedTuple):
    """Where a value comes from or goes to.

    Attributes:
        field: the field.
        element: which element of the array that the field is, from 0; None: the field itself.
    """

    field: str
    element: int | None = None


def slots_of(text: str) -> list[Slot]:
    """Return the slots that a text names, in order.

    Raises:
        ValueError: the text names none, or too many; the message says so in a sentence.
    """
    slots: list[Slot] = []
    for part in text.split(","):
        if part.strip():
            slots += _slots(part.strip())
        if len(slots) > MAX_ELEMENTS:
            raise ValueError(f"{text[:60]!r} names more than {MAX_ELEMENTS} elements")
    return slots


def _slots(part: str) -> Sequence[Slot]:
    match = _PLACE.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} is not a field, or a part of an array such as a[1-20]")
    field = match["field"]
    if match["first"] is None:
        return [Slot(field)]
    first = int(match["first"])
    last = int(match["last"] or first)
    if not 1 <= first <= last <= MAX_ELEMENTS:
        reason = f"elements are counted from 1 to {MAX_ELEMENTS}, the first one before the last"
        raise ValueError(f"{part!r}: {reason}")
    return [Slot(field, place - 1) for place in range(first, last + 1)]


class Input(NamedTuple):
    """What an algorithm looks at: where the values of one of its inputs are, in order."""

    name: str
    slots: tuple[Slot, ...]


class Output(NamedTuple):
    """A result, and where it is written to."""

    result: str
    slots: tuple[Slot, ...]
