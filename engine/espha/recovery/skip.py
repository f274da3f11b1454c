"""`espha skip`: have the engines go on at a later place of their input.

Where retention has removed input that no order record names yet, no engine can go on by itself: it
would be lost without a word. This says so in the order log, as whoever leads would: it fences the
engine that leads, and commits one order record with `resumes`. All replicas go on behind it.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import version
from typing import NamedTuple

from espha.connectors.topics import TopicPlan
from espha.kafka.order_log import last_order_record, order_records
from espha.kafka.reader import Offsets, ranges_backwards, read_range
from espha.kafka.writer import FencedWriter, Record
from espha.protocol.order import FORMAT, OrderRecord, Resume

OLDEST, NEWEST = "oldest", "newest"
SKIPPER = "espha-skip"
"""Stands in the order record in place of an engine's name."""
_NOTHING = hashlib.sha256().hexdigest()


class SkipError(Exception):
    """It cannot be done; the text says why, and what to do."""


class InputPlace(NamedTuple):
    """Where the order log is in one input topic, and what the topic holds."""

    window: str
    topic: str
    next: int | None
    """Where the next batch begins; None: the order records that say so have been removed."""
    first: int
    """Offset of the oldest record."""
    end: int
    """Offset behind the newest committed record."""


class Step(NamedTuple):
    """What is left out of one topic."""

    place: InputPlace
    to: int


def places(
    bootstrap: str, plan: TopicPlan, end: int | None = None
) -> tuple[OrderRecord, list[InputPlace]]:
    """Return the last order record, and where the log is in each input topic.

    Args:
        bootstrap: servers.
        plan: the topics.
        end: stable offset to which the order log is read; None: the one that there is now.

    Raises:
        SkipError: there is no order record.
        LogError: a topic cannot be read.
    """
    tail = last_order_record(bootstrap, plan.order_log, end)
    if tail is None:
        raise SkipError(
            f"topic {plan.order_log} has no order record: engines begin with the oldest input "
            "there is, and there is nothing to skip"
        )
    offsets = Offsets(bootstrap)
    whole = offsets.first(plan.order_log) == 0
    known = _named(bootstrap, plan.order_log, plan.inputs.values(), end)
    found = []
    for window, topic in plan.inputs.items():
        first = offsets.first(topic)
        begin = known.get(topic, first if whole else None)
        found.append(InputPlace(window, topic, begin, first, offsets.end(topic)))
    return tail, found


def steps(found: Iterable[InputPlace], window: str, to: str) -> list[Step]:
    """Return what is to be left out.

    Args:
        found: all input topics.
        window: "query/window" of the one that is meant; empty: all.
        to: an offset, `oldest` or `newest`.

    Raises:
        SkipError: there is no such window, or the offset is none to go on at.
    """
    known = {place.window: place for place in found}
    if window and window not in known:
        raise SkipError(f"source window {window!r} is not one of: {', '.join(known)}")
    wanted = [known[window]] if window else list(known.values())
    if to not in (OLDEST, NEWEST) and len(wanted) > 1:
        raise SkipError(f"an offset is of one topic: name its window, of {', '.join(known)}")
    asked = [Step(place, _offset(place, to)) for place in wanted]
    return [step for step in asked if step.to > _begin(step.place)]


def skip(bootstrap: str, plan: TopicPlan, window: str, to: str) -> tuple[int, list[Step]]:
    """Commit the order record; return its number and what it leaves out, 0 where that is nothing.

    Raises:
        SkipError: see `places` and `steps`; or the model is being changed.
        LogError: a topic cannot be read.
        WriterFailed: the brokers have not answered, or an engine was faster: try again.
    """
    if not _look(bootstrap, plan, window, to)[1]:
        return 0, []
    writer = FencedWriter(bootstrap, plan.order_log)
    writer.learn_leaders(plan.order_log)
    writer.fence()
    end = Offsets(bootstrap).settled(plan.order_log)
    # What the engine that led has committed until it was fenced counts.
    tail, chosen = _look(bootstrap, plan, window, to, end)
    if not chosen:
        return 0, []
    record = order_record(tail, [Resume(step.place.topic, step.to) for step in chosen])
    writer.commit([Record(plan.order_log, record.encode())], at=end)
    return record.sequence, chosen


def _look(
    bootstrap: str, plan: TopicPlan, window: str, to: str, end: int | None = None
) -> tuple[OrderRecord, list[Step]]:
    tail, found = places(bootstrap, plan, end)
    if tail.switch:
        raise SkipError("the model is being changed at this very order record: try again")
    return tail, steps(found, window, to)


def order_record(tail: OrderRecord, resumes: Sequence[Resume]) -> OrderRecord:
    """Return the order record that comes behind `tail`: no input, no output, and no time passes."""
    shadow = tail.shadow and tail.shadow.model_copy(update={"cursors": ()})
    return OrderRecord(
        format=FORMAT,
        sequence=tail.sequence + 1,
        inputs=(),
        clock=tail.clock,
        outputs=0,
        digest=_NOTHING,
        model=tail.model,
        engine=SKIPPER,
        epoch=tail.epoch + 1,
        runtime=f"espha {version('espha')}",
        records=0,
        inputs_digest=_NOTHING,
        semantics=tail.semantics,
        resumes=tuple(resumes),
        since=tail.since,
        shadow=shadow,
    )


def _offset(place: InputPlace, to: str) -> int:
    if to == OLDEST:
        return place.first
    if to == NEWEST:
        return place.end
    if not to.isdecimal():
        raise SkipError(f"{to!r} is neither an offset nor {OLDEST} nor {NEWEST}")
    offset, begin = int(to), _begin(place)
    if not max(begin, place.first) <= offset <= place.end:
        raise SkipError(
            f"topic {place.topic}: engines go on at offset {begin}, and the topic holds "
            f"{place.first} to {place.end - 1}: {offset} is no place to go on"
        )
    return offset


def _begin(place: InputPlace) -> int:
    """Return where engines go on by themselves, as far as is known."""
    return 0 if place.next is None else place.next


def _named(
    bootstrap: str, order_log: str, wanted: Collection[str], end: int | None
) -> dict[str, int]:
    """Return where each topic goes on, by the newest order record that names it."""
    found: dict[str, int] = {}
    for start, stop in ranges_backwards(bootstrap, order_log, end=end):
        newest: dict[str, int] = {}
        for record in order_records(order_log, read_range(bootstrap, order_log, start, stop)):
            newest |= {one.topic: one.offset for one in record.resumes}
            newest |= {one.topic: one.end for one in record.inputs}
        found = {**newest, **found}
        if found.keys() >= set(wanted):
            break
    return found
