"""Do the outputs on the topics belong to the order records, each to one, and are they the same?"""

import hashlib
import heapq
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from espha.checker.expect import Read
from espha.checker.order import order_records

_OLDER = -1
"""Stands for the place of every order record that has been removed."""


class Written(NamedTuple):
    """A record that an engine wrote.

    Attributes:
        topic: where it stands.
        value: as it stands there.
        headers: in their order; the message id is the one called `espha-id`.
        offset: its place on the topic.
    """

    topic: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    offset: int = 0

    @property
    def id(self) -> str:
        """The message id; "" where there is none."""
        return dict(self.headers).get("espha-id", b"").decode("utf-8", "replace")

    def read(self) -> Read:
        """Return what is compared of it."""
        return Read(self.offset, self.value.decode("utf-8", "surrogateescape"), self.id)


@dataclass(slots=True)
class Batches:
    """What is wrong between order records and outputs; empty when nothing is.

    Attributes:
        orphans: message ids of outputs that belong to no order record.
        incomplete: sequence numbers whose outputs are not as many as the record says.
        altered: sequence numbers whose outputs are not those that the record's digest stands for.
        displaced: message ids of outputs that stand behind those of a later order record.
        unjudged: how many order records have fewer outputs than they say, on topics whose first
            records have been removed: nobody can tell whether that is all that is missing.
    """

    orphans: list[str] = field(default_factory=list)
    incomplete: list[int] = field(default_factory=list)
    altered: list[int] = field(default_factory=list)
    displaced: list[str] = field(default_factory=list)
    unjudged: int = 0

    def problems(self) -> list[str]:
        """Return a sentence for each kind of trouble."""
        found = []
        if self.orphans:
            found.append(f"{len(self.orphans)} outputs without an order record: {self.orphans[0]}")
        if self.incomplete:
            found.append(
                f"sequence {self.incomplete[0]}: its record says another number of outputs than "
                f"the topics hold ({len(self.incomplete)} records)"
            )
        if self.altered:
            found.append(
                f"sequence {self.altered[0]}: the outputs on the topics have another digest "
                f"({len(self.altered)} records)"
            )
        if self.displaced:
            found.append(
                f"{len(self.displaced)} outputs behind those of a later order record: "
                f"{self.displaced[0]}"
            )
        return found


def check_batches(
    order: Iterable[bytes | str],
    written: Mapping[str, Sequence[Written]],
    order_log: str,
    trimmed: Collection[str] = (),
    later: Iterable[bytes | str] = (),
) -> Batches:
    """Compare order records with the outputs of all topics.

    Args:
        order: order records (JSON) as they stand on their topic.
        written: for each topic that engines write outputs to, all its records.
        order_log: topic of the order records, which the ids of what time brought about name.
        trimmed: topics whose first records have been removed. An output of an order record that is
            gone is no orphan, and a batch may have had outputs that are gone.
        later: order records that were committed while topics were read. Their outputs are no
            orphans, and need not be all there.
    """
    found = Batches()
    known = -1
    records = order_records(order)
    every = [*records, *order_records(later)]
    finder = _Finder(every, order_log, trimmed=order_log in trimmed)
    owned: list[list[list[_Placed]]] = [[] for _ in every]
    for topic, outputs in written.items():
        mine: dict[int, list[_Placed]] = {}
        furthest = _OLDER
        for output in outputs:
            owner, place = finder.owner(output.id)
            if finder.is_older(output.id):
                owner = _OLDER
            if owner is None:
                found.orphans.append(output.id or repr(output.value))
                continue
            if owner < furthest:
                found.displaced.append(output.id)
            furthest = max(furthest, owner)
            if owner != _OLDER:
                mine.setdefault(owner, []).append(_Placed(place, output))
        if topic in trimmed:
            known = max(known, min(mine, default=len(records)))
        for owner, placed in mine.items():
            owned[owner].append(placed)
    for number, (record, of_topics) in enumerate(zip(records, owned, strict=False)):
        # Each topic's own order stays: a topic in disorder must not be mended by sorting.
        together = [each.output for each in heapq.merge(*of_topics, key=lambda each: each.place)]
        if number <= known and len(together) < record["outputs"]:
            found.unjudged += 1
        elif len(together) != record["outputs"]:
            found.incomplete.append(record["sequence"])
        elif digest(together) != record["digest"]:
            found.altered.append(record["sequence"])
    return found


class _Placed(NamedTuple):
    place: tuple[int, int, int]
    output: Written


def digest(outputs: Iterable[Written]) -> str:
    """Return SHA-256 (hex) over topic, value and headers, as in an order record."""
    total = hashlib.sha256()
    for output in outputs:
        parts = [output.topic.encode(), output.value]
        for key, value in output.headers:
            parts += [key.encode(), value]
        for part in parts:
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


class _Finder:
    """Finds the order record that an output belongs to, by the output's message id."""

    def __init__(
        self, records: Sequence[Mapping[str, Any]], order_log: str, *, trimmed: bool
    ) -> None:
        self._order_log, self._trimmed = order_log, trimmed
        self._first = records[0]["sequence"] if records else None
        self._ranges: dict[str, list[tuple[int, int, int, int]]] = {}
        self._sequences = {record["sequence"]: place for place, record in enumerate(records)}
        for place, record in enumerate(records):
            for position, (topic, start, end) in enumerate(record["inputs"]):
                self._ranges.setdefault(topic, []).append((start, end, place, position))
        for ranges in self._ranges.values():
            ranges.sort()

    def is_older(self, identity: str) -> bool:
        """Tell whether an output's order record has been removed from the log."""
        topic, offset, _ = _parts(identity)
        if not self._trimmed or offset < 0:
            return False
        if topic == self._order_log:
            return self._first is None or offset < self._first
        ranges = self._ranges.get(topic)
        return not ranges or offset < ranges[0][0]

    def owner(self, identity: str) -> tuple[int | None, tuple[int, int, int]]:
        """Return the place of the order record, None for no record, and the output's place in it.

        An id names an input record, or, where only the clock led to an output, an order record:
        `<order log>:<sequence>:<ordinal>`.
        """
        topic, offset, ordinal = _parts(identity)
        if offset < 0:
            return None, (0, 0, 0)
        if topic == self._order_log:
            return self._sequences.get(offset), (-1, 0, ordinal)
        ranges = self._ranges.get(topic, [])
        found = bisect_right(ranges, (offset, float("inf"))) - 1
        if found < 0 or offset >= ranges[found][1]:
            return None, (0, 0, 0)
        _, _, place, position = ranges[found]
        return place, (position, offset, ordinal)


def _parts(identity: str) -> tuple[str, int, int]:
    """Return topic, offset and ordinal of a message id; an offset of -1: it is none."""
    before, _, ordinal = identity.rpartition(":")
    topic, _, offset = before.rpartition(":")
    if not (topic and offset.isdigit() and ordinal.isdigit()):
        return "", -1, -1
    return topic, int(offset), int(ordinal)
