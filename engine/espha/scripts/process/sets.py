"""Sets that keep the order in which their elements came.

The order of Python's own sets depends on everything that ever was in them, so it would be another
one after the variables of a script were taken out and put back.
"""

from collections.abc import Hashable, Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from typing import Any


class _Ordered(AbstractSet[Any]):
    """What sets of both kinds share."""

    __slots__ = ("_elements",)
    _elements: dict[Any, None]

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._elements = dict.fromkeys(elements)

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self._elements))
        return f"{{{inner}}}" if inner else f"{type(self).__name__}()"

    def __class_getitem__(cls, _: Any) -> type:
        return cls

    @classmethod
    def _from_iterable(cls, elements: Iterable[Any]) -> Any:
        return cls(elements)

    def copy(self) -> Any:
        """Return a set of the same elements."""
        return type(self)(self)

    def union(self, *others: Iterable[Any]) -> Any:
        """Return the elements of all."""
        return type(self)(element for each in (self, *others) for element in each)

    def intersection(self, *others: Iterable[Any]) -> Any:
        """Return the elements that are in all."""
        known = [set(other) for other in others]
        return type(self)(each for each in self if all(each in other for other in known))

    def difference(self, *others: Iterable[Any]) -> Any:
        """Return the elements that are in no other."""
        known = {element for other in others for element in other}
        return type(self)(each for each in self if each not in known)

    def symmetric_difference(self, other: Iterable[Any]) -> Any:
        """Return the elements that are in one of both."""
        return self ^ type(self)(other)

    def issubset(self, other: Iterable[Any]) -> bool:
        """Say whether all elements are in another one."""
        return self <= Frozen(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Say whether all elements of another one are in this one."""
        return self >= Frozen(other)


class Ordered(_Ordered, MutableSet[Any]):
    """Stands for `set`."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def add(self, value: Any) -> None:
        """Add an element."""
        self._elements[value] = None

    def discard(self, value: Any) -> None:
        """Take an element out if it is there."""
        self._elements.pop(value, None)

    def update(self, *others: Iterable[Any]) -> None:
        """Add all elements of others."""
        for other in others:
            self._elements.update(dict.fromkeys(other))

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """Keep what is in all others."""
        self._elements = dict.fromkeys(self.intersection(*others))

    def difference_update(self, *others: Iterable[Any]) -> None:
        """Keep what is in no other."""
        self._elements = dict.fromkeys(self.difference(*others))

    def symmetric_difference_update(self, other: Iterable[Any]) -> None:
        """Keep what is in one of both."""
        self._elements = dict.fromkeys(self.symmetric_difference(other))


class Frozen(_Ordered, Hashable):
    """Stands for `frozenset`."""

    __slots__ = ()

    def __hash__(self) -> int:
        return self._hash()


Ordered.__name__, Frozen.__name__ = "set", "frozenset"
