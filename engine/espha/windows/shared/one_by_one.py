"""Parts of a state that are made while they are written."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class OneByOne:
    """Many parts of a state, each of which is made when it is written, and forgotten then.

    A state is written by a process that shares all its memory with the one that works on. So a
    copy of a large state would cost as much memory as the state itself. What is read back is a
    list.
    """

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        """`make` returns the parts, each time it is called, in an order that is always the same."""
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        """Make the parts."""
        return iter(self._make())

    def __eq__(self, other: object) -> bool:
        """Compare the parts."""
        return isinstance(other, OneByOne) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
