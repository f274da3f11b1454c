"""How an active engine works where others have died, until the one to blame is set aside.

Twice a batch is tried as it came, without what has come meanwhile. From the second death on in one
stretch of the input the engine is careful there: first it lets time pass in a batch without input,
so that what time alone brings about is never laid on a record; then it takes a sixteenth of what
the dead one had taken, and so on, down to one record at a time, with the clock standing still. A
record is set aside when it has ended two lives alone, or when the kernel has named it twice: that
costs two lives where the kernel can name it, else 4 in a batch of up to 31 records, 5 of up to 511,
and 6 of more.

A batch whose transaction was lost because it computed for too long counts as a death, too: what
comes after it is a smaller one. So does one whose outputs have waited for Kafka that long, but no
record is ever set aside for it.

That a record is set aside stands in the order record, with the reason; the rest follows from it.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from espha.kafka.reader import LogError
from espha.kafka.writer import Fenced, TooLarge, WriterFailed
from espha.pipeline.job import BrokenRecordError, Input
from espha.protocol.deaths import Deaths, Place, UnderWay, UnderWayNote
from espha.protocol.order import Range, Skip
from espha.protocol.records import SET_ASIDE_REASON
from espha.protocol.states import EndReason

_FROM = 2
_TIMES = 2
_PARTS = 16
_REASON_LETTERS = 500
_SHARE = 0.5
"""Of the time that brokers give a transaction: a batch that has computed for longer has lost it
by itself. The rest is for what Kafka needs."""


class TookTooLong(WriterFailed):
    """A batch has computed for longer than brokers keep its transaction open."""

    reason = EndReason.RECORD


class Care(NamedTuple):
    """How to go on in a stretch in which engines have died."""

    limit: int
    """Records that may be in a batch."""


class Told(Protocol):
    """Who knows what ZooKeeper says of deaths: `espha.protocol.child_side.Control`."""

    deaths: Deaths | None


class Cursors(Protocol):
    """Who knows where the input goes on: `espha.engine.inputs.Inputs`."""

    def next_offsets(self) -> Mapping[str, int]:
        """Return for each input topic the offset of the next record."""


class Quarantine:
    """Knows where to be careful, and which records to set aside; notes what is under way."""

    def __init__(self, told: Told, note: UnderWayNote, log: str) -> None:
        """Work on the order log that has the id `log` in Kafka."""
        self._told, self._note, self._log = told, note, log

    @property
    def _deaths(self) -> Deaths | None:
        """What is known of deaths in this order log; of another one, nothing counts."""
        deaths = self._told.deaths
        return deaths if deaths is not None and deaths.log == self._log else None

    def care(self, sequence: int, inputs: Cursors) -> Care | None:
        """Say how to go on behind the order record `sequence`; None: as ever."""
        deaths = self._deaths
        if deaths is None or deaths.count < _FROM:
            return None
        cursors = inputs.next_offsets()
        inside = any(cursors.get(topic, end) < end for topic, _, end in deaths.inputs)
        if sequence < deaths.after or not (inside or sequence == deaths.after):
            return None
        return Care(max(1, deaths.records // _PARTS))

    def again(self, sequence: int) -> int | None:
        """Return how many records a batch behind `sequence` had in which one engine has died.

        The next one tries the same batch, and not what has come meanwhile with it: where a record
        is to blame, it stands among fewer others. None: nobody died there, or more than one did.
        """
        deaths = self._deaths
        if deaths is None or deaths.after != sequence or deaths.count >= _FROM:
            return None
        return deaths.records or None

    def skips(self, inputs: Sequence[Input]) -> tuple[Skip, ...]:
        """Return which of these records are set aside, and why."""
        deaths = self._deaths
        if deaths is None:
            return ()
        condemned = {
            (one.place.topic, one.place.offset): one for one in deaths.blamed if one.times >= _TIMES
        }
        if not condemned:
            return ()
        return tuple(
            Skip(entry.topic, entry.offset, _sentence(blame.times, blame.reason))
            for entry in inputs
            if (blame := condemned.get((entry.topic, entry.offset)))
        )

    @contextmanager
    def running(
        self,
        after: int,
        ranges: Sequence[Range],
        records: int,
        *,
        careful: bool,
        limit_s: float,
    ) -> Iterator[Callable[[float, float], None]]:
        """Note that a batch behind order record `after` is under way, and why it fails.

        Call what this yields when the batch is computed, with how long (s) that took and how long
        outputs had to wait for Kafka beside it: what Kafka does to it then is no record's fault,
        unless its transaction, which brokers keep open for `limit_s`, was lost because of that.
        What ends this process before leaves the note.

        Raises:
            TookTooLong: that was so.
        """
        under_way = UnderWay(
            log=self._log, after=after, records=records, inputs=tuple(ranges), careful=careful
        )
        self._note.write(under_way)
        took = waited = 0.0

        def computed(took_s: float, waited_s: float) -> None:
            nonlocal took, waited
            took, waited = took_s, waited_s
            self._note.clear()

        try:
            yield computed
        except BrokenRecordError as error:
            broke = None
            if error.topic is not None and error.offset is not None:
                broke = Place(topic=error.topic, offset=error.offset)
            self._blame(under_way, error.reason, broke)
            raise
        except TooLarge as error:
            self._blame(under_way, str(error))
            raise
        except (WriterFailed, LogError) as error:
            self._note.clear()
            long = _SHARE * limit_s
            behind = f"and brokers end a transaction after {limit_s:.0f} s"
            if isinstance(error, Fenced) and took > long:
                reason = f"a batch of {records} records has computed for {took:.0f} s, {behind}"
                self._blame(under_way, reason)
                raise TookTooLong(f"{reason}: {error}") from None
            if took + waited > long:
                reason = (
                    f"a batch of {records} records was under way for {took + waited:.0f} s, of "
                    f"which outputs have waited for {waited:.0f} s, {behind}"
                )
                self._blame(under_way.model_copy(update={"waited": True}), reason)
            raise

    def _blame(self, under_way: UnderWay, reason: str, broke: Place | None = None) -> None:
        change = {"broke": broke, "reason": reason[:_REASON_LETTERS]}
        self._note.write(under_way.model_copy(update=change))


def _sentence(times: int, reason: str) -> str:
    return f"{SET_ASIDE_REASON} {times} engines: {reason}"


class _Nobody:
    deaths: Deaths | None = None


BLIND = Quarantine(_Nobody(), UnderWayNote(Path(os.devnull)), "")
"""Knows of no deaths, and notes nothing."""
