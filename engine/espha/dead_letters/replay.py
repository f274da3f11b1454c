"""Give dead letters to the model once more, each one once.

A replayed record goes to the end of the input topic that its letter came from. In the same
transaction its letter's number goes to the topic of positions, whose newest records stay: so who
replays it again is told, also long after both records are gone. One process replays at a time:
they have one transactional id.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from espha.connectors.topics import TopicPlan
from espha.dead_letters.letters import Letter, LetterKind, origin_of
from espha.kafka.reader import Offsets, read_range
from espha.kafka.writer import FencedWriter, Record
from espha.protocol.records import REPLAY_HEADER
from espha.protocol.sizes import TRANSACTION_BYTES

_KEY = "replayed "
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be replayed beside rows that were refused and were not replayed yet.

    Attributes:
        again: letters that were replayed before.
        set_aside: records that have ended engines.
    """

    again: bool = False
    set_aside: bool = False


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one letter.

    Attributes:
        offset: the letter's number.
        refusal: why it was not replayed; empty: it was.
    """

    offset: int
    refusal: str = ""


class Replay:
    """Replays letters of one deployment."""

    def __init__(self, bootstrap: str, plan: TopicPlan, choice: Choice) -> None:
        """Get ready; nothing is read or written yet."""
        self._bootstrap, self._plan, self._choice = bootstrap, plan, choice
        self._key = f"{_KEY}{Offsets(bootstrap).topic_id(plan.dead_letters)}:"
        self._done: set[int] = set()

    def run(self, letters: Iterable[Letter], *, rehearse: bool = False) -> Iterator[Replayed]:
        """Replay letters, and say of each what became of it, once that is certain.

        Args:
            letters: which ones, each once.
            rehearse: write nothing.

        Raises:
            LogError, WriterFailed: Kafka refuses. What was said to be replayed is.
        """
        begin = self._key.encode()
        writer = FencedWriter(
            self._bootstrap,
            f"{self._plan.prefix}.replay",
            mine=lambda key: key.startswith(begin),
        )
        if not rehearse:
            writer.fence()
        self._done = self.replayed()
        ready: list[tuple[int, Sequence[Record]]] = []
        size = 0
        for letter in letters:
            found = self._records(letter)
            if isinstance(found, str):
                yield Replayed(letter.offset, found)
                continue
            ready.append((letter.offset, found))
            size += len(found[0].value)
            if size >= TRANSACTION_BYTES or len(ready) >= _AT_ONCE:
                yield from self._commit(writer, ready, rehearse)
                ready, size = [], 0
        yield from self._commit(writer, ready, rehearse)

    def replayed(self) -> set[int]:
        """Return the offsets of letters that were replayed before.

        Raises:
            LogError: the topic of positions cannot be read.
        """
        topic, offsets = self._plan.positions, Offsets(self._bootstrap)
        begin = self._key.encode()
        return {
            int(message.key().removeprefix(begin))
            for message in read_range(
                self._bootstrap, topic, offsets.first(topic), offsets.settled(topic)
            )
            if (message.key() or b"").startswith(begin)
        }

    def _commit(
        self, writer: FencedWriter, ready: list[tuple[int, Sequence[Record]]], rehearse: bool
    ) -> Iterator[Replayed]:
        if ready and not rehearse:
            writer.commit(record for _, records in ready for record in records)
        yield from (Replayed(number) for number, _ in ready)

    def _records(self, letter: Letter) -> Sequence[Record] | str:
        """Return what replays a letter, or why it is not replayed."""
        refusal = self._refusal(letter)
        if refusal:
            return refusal
        value = letter.payload if letter.size == len(letter.payload) else self._whole(letter)
        if value is None:
            return f"only the first {len(letter.payload)} of {letter.size} bytes are left of it"
        identity = letter.id.encode() if letter.id else b""
        key = f"{self._key}{letter.offset}".encode()
        return (
            Record(letter.source, value, ((REPLAY_HEADER, identity),)),
            Record(self._plan.positions, identity, key=key),
        )

    def _refusal(self, letter: Letter) -> str:
        if letter.kind is LetterKind.UNREAD:
            return "it is no row: correct it at its source, and send it from there"
        if letter.kind is LetterKind.OUTPUT:
            return f"it is an output of window {letter.window}, and no input"
        if letter.source not in self._plan.inputs.values():
            return f"its input topic {letter.source!r} is none of this model"
        if letter.kind is LetterKind.SET_ASIDE and not self._choice.set_aside:
            return "it has ended engines: correct the model first, then give --set-aside"
        if letter.offset in self._done and not self._choice.again:
            return "it was replayed before; give --again to replay it once more"
        return ""

    def _whole(self, letter: Letter) -> bytes | None:
        origin = origin_of(self._bootstrap, self._plan, letter)
        if origin is None or hashlib.sha256(origin.value).hexdigest() != letter.digest:
            return None
        return origin.value
