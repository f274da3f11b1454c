"""What can be done with an array: a variable, or a field of an array type.

An array is a tuple of values, so that it can be part of a state. Places count from 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from espha.languages.eel.value_types import ValueType

MAX_SIZE: Final = 10_000
"""Most elements of an array that an expression makes."""

_ELEMENTS_OF_A_STEP: Final = 100

Done = tuple[tuple[Any, ...], Any, int]
"""The array from now on, the result, and the steps that it took."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method.

    Attributes:
        takes: one letter an argument: n number, e an element.
        gives: the type of its result; "element" is that of the elements.
        apply: takes the array and the arguments.
        needed: how many arguments must be there.
        changes: whether it changes the array when it has so many arguments; None: never.
    """

    takes: str
    gives: ValueType
    apply: Callable[..., Done]
    needed: int
    changes: int | None = None


def _dim(held: tuple[Any, ...], size: float | None = None) -> Done:
    """Return how many elements there are; with an argument, make it so many first."""
    if size is None:
        return held, len(held), 1
    wanted = max(0, min(MAX_SIZE, int(size)))
    changed = (*held[:wanted], *(None,) * (wanted - len(held)))
    return changed, wanted, _steps(changed)


def _get(held: tuple[Any, ...], place: float | None) -> Done:
    """Return an element; null where there is none."""
    found = 0 if place is None else int(place)
    return held, held[found - 1] if 1 <= found <= len(held) else None, 1


def _set(held: tuple[Any, ...], place: float | None, value: Any) -> Done:
    """Change an element, and return what it was; where there is none, nothing happens."""
    found = 0 if place is None else int(place)
    if not 1 <= found <= len(held):
        return held, None, 1
    changed = (*held[: found - 1], value, *held[found:])
    return changed, held[found - 1], _steps(changed)


def _steps(array: tuple[Any, ...]) -> int:
    return 1 + len(array) // _ELEMENTS_OF_A_STEP


METHODS: Final[dict[str, Method]] = {
    "dim": Method("n", "int", _dim, 0, changes=1),
    "get": Method("n", "element", _get, 1),
    "set": Method("ne", "element", _set, 2, changes=2),
}
