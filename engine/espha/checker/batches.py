"""Do the outputs on the topics belong to the order records, each to one, and are they the same?"""

import hashlib
import heapq
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from espha.checker.expect import Read


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
    """

    orphans: list[str] = field(default_factory=list)
    incomplete: list[int] = field(default_factory=list)
    altered: list[int] = field(default_factory=list)

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
        return found


def check_batches(
    order: Iterable[bytes | str], written: Mapping[str, Sequence[Written]], order_log: str
) -> Batches:
    """Compare order records with the outputs of all topics.

    Args:
        order: order records (JSON) as they stand on their topic.
        written: for each topic that engines write outputs to, all its records.
        order_log: topic of the order records, which the ids of what time brought about name.
    """
    found = Batches()
    records = [json.loads(value) for value in order]
    finder = _Finder(records, order_log)
    owned: list[list[list[_Placed]]] = [[] for _ in records]
    for outputs in written.values():
        mine: dict[int, list[_Placed]] = {}
        for output in outputs:
            owner, place = finder.owner(output.id)
            if owner is None:
                found.orphans.append(output.id or repr(output.value))
            else:
                mine.setdefault(owner, []).append(_Placed(place, output))
        for owner, placed in mine.items():
            owned[owner].append(placed)
    for record, of_topics in zip(records, owned, strict=True):
        # Each topic's own order stays: a topic in disorder must not be mended by sorting.
        together = [each.output for each in heapq.merge(*of_topics, key=lambda each: each.place)]
        if len(together) != record["outputs"]:
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

    def __init__(self, records: Sequence[Mapping[str, Any]], order_log: str) -> None:
        self._order_log = order_log
        self._ranges: dict[str, list[tuple[int, int, int, int]]] = {}
        self._sequences = {record["sequence"]: place for place, record in enumerate(records)}
        for place, record in enumerate(records):
            for position, (topic, start, end) in enumerate(record["inputs"]):
                self._ranges.setdefault(topic, []).append((start, end, place, position))
        for ranges in self._ranges.values():
            ranges.sort()

    def owner(self, identity: str) -> tuple[int | None, tuple[int, int, int]]:
        """Return the place of the order record, None for no record, and the output's place in it.

        An id names an input record, or, where only the clock led to an output, an order record:
        `<order log>:<sequence>:<ordinal>`.
        """
        topic, _, rest = identity.rpartition(":")[0].rpartition(":")
        ordinal = identity.rpartition(":")[2]
        if not (topic and rest.isdigit() and ordinal.isdigit()):
            return None, (0, 0, 0)
        if topic == self._order_log:
            return self._sequences.get(int(rest)), (-1, 0, int(ordinal))
        ranges, offset = self._ranges.get(topic, []), int(rest)
        found = bisect_right(ranges, (offset, float("inf"))) - 1
        if found < 0 or offset >= ranges[found][1]:
            return None, (0, 0, 0)
        _, _, place, position = ranges[found]
        return place, (position, offset, int(ordinal))
