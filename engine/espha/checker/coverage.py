"""Is every input record in exactly one batch? Those that are in none were never processed."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from espha.protocol.order import Range


class Unprocessed(NamedTuple):
    """Input records that no order record names, though it names later ones of their topic.

    Attributes:
        topic: where they stand.
        first: offset of the first one.
        rows: how many there are.
    """

    topic: str
    first: int
    rows: int

    def __str__(self) -> str:
        return f"{self.rows} records of {self.topic} in no batch, the first at offset {self.first}"


@dataclass(slots=True)
class Coverage:
    """What became of the input records.

    Attributes:
        passed_over: records that were left out; their turn has gone by.
        waiting: records behind the last one that was processed; their turn may still come.
    """

    passed_over: list[Unprocessed] = field(default_factory=list)
    waiting: list[Unprocessed] = field(default_factory=list)


def check_coverage(
    ranges: Iterable[Range], inputs: Mapping[str, Sequence[int]], *, trimmed: bool = False
) -> Coverage:
    """Look for each input record in the ranges of the order log.

    Args:
        ranges: of all order records.
        inputs: for each input topic the offsets of its committed records, ascending.
        trimmed: the first order records have been removed: what lies before the ranges of the
            others was in them.
    """
    found = Coverage()
    taken: dict[str, list[tuple[int, int]]] = {topic: [] for topic in inputs}
    for topic, start, end in ranges:
        taken.setdefault(topic, []).append((start, end))
    for topic, offsets in inputs.items():
        mine = sorted(taken[topic])
        if trimmed and not mine:
            continue
        behind = max((end for _, end in mine), default=-1)
        since = mine[0][0] if trimmed else 0
        missing = [offset for offset in offsets if offset >= since and not within(mine, offset)]
        waits = bisect_right(missing, behind - 1)
        for rows, kind in ((missing[:waits], found.passed_over), (missing[waits:], found.waiting)):
            if rows:
                kind.append(Unprocessed(topic, rows[0], len(rows)))
    return found


def within(ranges: Sequence[tuple[int, int]], offset: int) -> bool:
    """Tell whether an offset is in one of some ranges, which are in order."""
    place = bisect_right(ranges, (offset, float("inf"))) - 1
    return place >= 0 and offset < ranges[place][1]
