"""The input topics of an engine: taken freely when active, by the order log when standby."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, groupby
from operator import methodcaller
from typing import Final

from confluent_kafka import KafkaError, Message, TopicPartition

from espha.kafka.held import STATISTICS, HeldTopics
from espha.kafka.reader import PARTITION, LogError, Offsets, Standstill, check, reader
from espha.pipeline.job import Input
from espha.protocol.order import Cursor, Range
from espha.protocol.sizes import BATCH_BYTES, BUFFER_BYTES

_BUFFERED_AT_MOST = 50_000
"""Records held for one topic; it is paused above that, and above its share of `BUFFER_BYTES`."""
_FETCHED_AT_ONCE = 1000
_LOOKED_AT = 4000
"""So many records are fetched beside those that are held, where a topic has none: its own may stand
behind another one's in the client. Fewer than a large batch takes, so that no more and more are
held; where batches are small, the other one is full and paused soon."""

_STEP_S = 0.5
_TOPIC = methodcaller("topic")


class Inputs:
    """Reads all input topics through one consumer; what was read and not used stays buffered.

    The same buffer serves a standby and the active engine that it becomes, so nothing is read
    twice or skipped at a take-over.
    """

    def __init__(
        self, bootstrap: str, topics: list[str], cursors: Mapping[str, Cursor] | None = None
    ) -> None:
        """Begin at the topics' first records, or where a snapshot says that its engine was.

        Where records that come next are gone, whoever wants them learns it.
        """
        cursors = cursors or {}
        offsets = Offsets(bootstrap)
        self._first = {topic: offsets.first(topic) for topic in topics}
        self._gone = {
            topic: range(place.read, self._first[topic])
            for topic, place in cursors.items()
            if place.read < self._first[topic]
        }
        """Records that come next, and that retention has removed."""
        read = {topic: place.read for topic, place in cursors.items() if topic not in self._gone}
        starts = {**self._first, **read}
        self._next = {**self._first, **{topic: place.next for topic, place in cursors.items()}}
        self._used = set(cursors)
        self._stable = dict(starts)
        self._buffers = {topic: _Buffer() for topic in topics}
        self._turns = list(topics)
        """Who begins a batch; whoever has begun one stands behind all others then."""
        self._share = BUFFER_BYTES // max(1, len(topics))
        self._paused: set[str] = set()
        self._asked = ""
        """The topic of which the order log asks for more: it is not paused, whatever it holds."""
        self.held_topics = HeldTopics(paused=self._paused)
        """Which topics somebody's open transaction keeps from being read."""
        self._consumer = reader(
            bootstrap, starts, settings={**STATISTICS, "stats_cb": self.held_topics.hear}
        )

    def cursors(self) -> dict[str, Cursor]:
        """Return where this engine is in each topic that it has used; a snapshot keeps it."""
        self._fetch(0)  # the end of a topic may just have been reached
        return {
            topic: Cursor(self._next[topic], buffer.first.offset if buffer else self._stable[topic])
            for topic, buffer in self._buffers.items()
            if topic in self._used
        }

    def next_offsets(self) -> dict[str, int]:
        """Return for each topic the offset at which its next range begins."""
        return self._next

    def has(self, topic: str) -> bool:
        """Tell whether it is one of these topics."""
        return topic in self._buffers

    def used(self) -> tuple[tuple[str, int], ...]:
        """Return topic and next offset of all topics that order records have named."""
        return tuple((topic, self._next[topic]) for topic in self._next if topic in self._used)

    def take(
        self, limit: int, timeout: float, limit_bytes: int = BATCH_BYTES
    ) -> tuple[list[Range], list[Input]]:
        """Take new records, waiting up to `timeout` seconds for the first one.

        Args:
            limit: records that are taken at most.
            timeout: in seconds.
            limit_bytes: what their values may have together; the first one may have more.

        Returns the ranges taken, at most one for each topic, and the records in the order in which
        they must be processed. Topics have equal shares, and what one does not use is the others':
        nobody's backlog keeps another one's records waiting.

        Raises:
            LogError: records that come next are gone.
        """
        for topic in self._gone:
            self._expect_there(topic)
        held = sum(map(len, self._buffers.values()))
        lacking = limit - held
        if not all(self._buffers.values()):
            lacking = max(lacking, _LOOKED_AT)
        if lacking > 0:
            self._fetch(0 if held else timeout, lacking)
        shares = self._share_out(limit, limit_bytes)
        ranges: list[Range] = []
        for topic, share in shares.items():
            ranges.append(Range(topic, self._next[topic], share[-1].offset + 1))
            self._advance(topic, share[-1].offset + 1)
        return ranges, list(chain.from_iterable(shares.values()))

    def _share_out(self, limit: int, limit_bytes: int) -> dict[str, list[Input]]:
        """Take out of the buffers what makes a batch, round by round, as long as somebody has more.

        The first record of all is taken whatever its size, so no topic may always come second.
        """
        shares: dict[str, list[Input]] = {}
        sharers = [topic for topic in self._turns if self._buffers[topic]]
        for first in sharers[:1]:
            self._turns.remove(first)
            self._turns.append(first)
        before = limit + 1
        while sharers and limit < before:
            before, each, size = limit, -(-limit // len(sharers)), limit_bytes // len(sharers)
            for topic in sharers:
                at_least = 0 if shares else 1
                share, used = self._buffers[topic].take(min(each, limit), size, at_least)
                if share:
                    shares.setdefault(topic, []).extend(share)
                    limit, limit_bytes = limit - len(share), limit_bytes - used
            sharers = [topic for topic in sharers if self._buffers[topic]]
        return shares

    def read(self, wanted: Range) -> list[Input]:
        """Return exactly the committed records of a range that the order log names.

        Raises:
            LogError: the range does not follow what was read before, its records are gone, or
                nothing comes any more.
        """
        self._expect(wanted)
        buffer = self._buffers[wanted.topic]
        self._asked = wanted.topic
        standstill = Standstill(f"topic {wanted.topic}, waiting for offset {wanted.end - 1}")
        while not self._has(wanted):
            standstill.look(self._stable[wanted.topic])
            self._resume(wanted.topic)
            self._fetch(_STEP_S)
        self._asked = ""
        # A topic that is not in use yet is read from its beginning, which may be before the range.
        records = buffer.take_before(wanted.end)
        if records and records[0].offset < wanted.start:
            records = [entry for entry in records if entry.offset >= wanted.start]
        self._advance(wanted.topic, wanted.end)
        if not records or records[-1].offset != wanted.end - 1:
            raise LogError(
                f"topic {wanted.topic}: the record at offset {wanted.end - 1}, which the order log "
                "names, is not there"
            )
        return records

    def pass_over(self, topic: str, end: int) -> None:
        """Go on at offset `end`, whatever lies before; nothing where this model has no such topic.

        Another model has processed it, or an order record leaves it out.
        """
        if topic in self._buffers:
            self._buffers[topic].take_before(end)
            if self._stable[topic] < end:
                self._consumer.seek(TopicPartition(topic, PARTITION, end))
                self._stable[topic] = end
            if topic in self._gone and end >= self._gone[topic].stop:
                del self._gone[topic]
            self._advance(topic, end)

    def waiting(self) -> list[str]:
        """Return the topics of which there is input that no order record that was read names."""
        if sum(map(len, self._buffers.values())) < _FETCHED_AT_ONCE:  # else there is a backlog
            self._fetch(0)
        return [topic for topic, buffer in self._buffers.items() if buffer]

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()

    def _expect(self, wanted: Range) -> None:
        topic = wanted.topic
        if topic not in self._buffers:
            raise LogError(f"the order log names topic {topic}, which is no input of this model")
        self._expect_there(topic)
        if topic not in self._used and self._first[topic] > wanted.start:
            raise LogError(
                f"topic {topic}: records {wanted.start} to {self._first[topic] - 1} are needed to "
                "rebuild the state, and retention has removed them"
            )
        if topic in self._used and self._next[topic] != wanted.start:
            raise LogError(
                f"topic {topic}: the order log goes on at offset {wanted.start}, "
                f"this engine is at {self._next[topic]}"
            )

    def _expect_there(self, topic: str) -> None:
        gone = self._gone.get(topic)
        if gone:
            raise LogError(
                f"topic {topic}: records {gone.start} to {gone.stop - 1} come next, and retention "
                "has removed them; `espha skip` lets engines go on behind them"
            )

    def _has(self, wanted: Range) -> bool:
        buffer = self._buffers[wanted.topic]
        return self._stable[wanted.topic] >= wanted.end or bool(
            buffer and buffer.last.offset >= wanted.end - 1
        )

    def _advance(self, topic: str, end: int) -> None:
        self._used.add(topic)
        self._next[topic] = end
        if not self._buffers[topic].exceeds(_BUFFERED_AT_MOST // 2, self._share // 2):
            self._resume(topic)

    def _resume(self, topic: str) -> None:
        if topic in self._paused:
            self._paused.remove(topic)
            self._consumer.resume([TopicPartition(topic, PARTITION)])

    def _fetch(self, timeout: float, limit: int = _FETCHED_AT_ONCE) -> None:
        """Keep what has come, about `limit` records at most; wait for the first one."""
        # consume(n, t) would wait until it has n messages: wait for one, then take what is there.
        first = self._consumer.poll(timeout)
        messages = [] if first is None else [first]
        while messages:
            self._keep(messages)
            limit -= len(messages)
            messages = self._consumer.consume(min(limit, _FETCHED_AT_ONCE), 0) if limit > 0 else []

    def _keep(self, messages: Iterable[Message]) -> None:
        """Keep records in their buffers, and pause topics that have enough in them."""
        for topic, group in groupby(messages, _TOPIC):
            entries: list[Input] = []
            for message in group:
                if message.error() is None:
                    entries.append(_input((topic, message.offset(), message.value() or b"")))
                elif not check(message) and message.error().code() == KafkaError._PARTITION_EOF:
                    self._stable[topic] = max(self._stable[topic], message.offset())
            if entries:
                self._keep_of(topic, entries)

    def _keep_of(self, topic: str, entries: list[Input]) -> None:
        buffer = self._buffers[topic]
        buffer.put(entries)
        self._stable[topic] = max(self._stable[topic], entries[-1].offset + 1)
        full = topic != self._asked and buffer.exceeds(_BUFFERED_AT_MOST, self._share)
        if full and topic not in self._paused:
            self._paused.add(topic)
            self._consumer.pause([TopicPartition(topic, PARTITION)])


class _Buffer:
    """Records of one topic, first in, first out, and how many bytes their values have."""

    def __init__(self) -> None:
        self._records: deque[Input] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    @property
    def first(self) -> Input:
        """The first one; there must be one."""
        return self._records[0]

    @property
    def last(self) -> Input:
        """The last one; there must be one."""
        return self._records[-1]

    def put(self, entries: list[Input]) -> None:
        """Add some."""
        self._records += entries
        self._bytes += _size(entries)

    def take(self, limit: int, limit_bytes: int, at_least: int) -> tuple[list[Input], int]:
        """Take out up to so many, with so many bytes; return them, and how many bytes they have.

        `at_least` so many are taken, whatever they have.
        """
        records, left = self._records, limit_bytes
        taken: list[Input] = []
        while records and len(taken) < limit:
            left -= len(records[0].value)
            if left < 0 and len(taken) >= at_least:
                break
            taken.append(records.popleft())
        return taken, self._forget(taken)

    def take_before(self, end: int) -> list[Input]:
        """Take out what stands before offset `end`."""
        records = self._records
        taken: list[Input] = []
        while records and records[0].offset < end:
            taken.append(records.popleft())
        self._forget(taken)
        return taken

    def _forget(self, taken: list[Input]) -> int:
        size = _size(taken)
        self._bytes -= size
        return size

    def exceeds(self, records: int, size: int) -> bool:
        """Tell whether there are so many, or so many bytes."""
        return len(self._records) >= records or self._bytes >= size


_input: Final[Callable[[tuple[str, int, bytes]], Input]] = partial(tuple.__new__, Input)
"""An input of its parts, several times as fast as by name."""


def _size(entries: list[Input]) -> int:
    return sum([len(value) for _, _, value in entries])
