"""Compare what came with what had to come."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

_NAMED = 100


@dataclass(frozen=True, slots=True)
class Damage:
    """Counts of what is wrong with a sequence; all zero when it is exactly as expected.

    Attributes:
        lost: expected, and never came.
        double: came again, once for each extra time.
        disorder: came behind something that had to come later.
        foreign: came, and nobody expected it.
        first: the first offence in words, "" when there is none.
        offences: kind and entry of the first hundred offences.
    """

    lost: int = 0
    double: int = 0
    disorder: int = 0
    foreign: int = 0
    first: str = ""
    offences: tuple[tuple[str, Hashable], ...] = field(default=(), compare=False)

    @property
    def none(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.double or self.disorder or self.foreign)


def compare(expected: Sequence[Hashable], got: Sequence[Hashable]) -> Damage:
    """Find the damage in `got`.

    Equal entries of `expected` are told apart by their number: the second `x` that came is the
    second `x` that was expected, and a third one is double.
    """
    places = {entry: place for place, entry in enumerate(_numbered(expected))}
    known = set(expected)
    offences: list[tuple[str, Hashable]] = []
    furthest, seen = -1, set()
    for entry in _numbered(got):
        place = places.get(entry)
        if place is None:
            offences.append(("double" if entry[0] in known else "not expected", entry[0]))
            continue
        seen.add(place)
        if place < furthest:
            offences.append(("out of order", entry[0]))
        furthest = max(furthest, place)
    offences += [("lost", each) for place, each in enumerate(expected) if place not in seen]
    counts = Counter(kind for kind, _ in offences)
    return Damage(
        lost=counts["lost"],
        double=counts["double"],
        disorder=counts["out of order"],
        foreign=counts["not expected"],
        first=": ".join(map(str, offences[0])) if offences else "",
        offences=tuple(offences[:_NAMED]),
    )


def _numbered(entries: Iterable[Hashable]) -> Iterable[tuple[Hashable, int]]:
    counts: Counter[Hashable] = Counter()
    for entry in entries:
        counts[entry] += 1
        yield entry, counts[entry]
