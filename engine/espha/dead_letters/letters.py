"""Dead letters as they stand on `<prefix>.E`, each with the record that it is of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from confluent_kafka import Message

from espha.adapters.formats.refused import read_not_a_row
from espha.connectors.topics import TopicPlan
from espha.kafka.reader import Offsets, read_range
from espha.protocol.records import (
    DIGEST_HEADER,
    ID_HEADER,
    OUTPUT_REASON,
    REASON_HEADER,
    SET_ASIDE_REASON,
    SIZE_HEADER,
    SOURCE_HEADER,
    WINDOW_HEADER,
    MessageId,
)


class LetterKind(StrEnum):
    """What a dead letter is of."""

    ROW = "row"
    """An input record that the model has refused."""
    UNREAD = "unread"
    """What an input adapter has got, and could not read as a row."""
    SET_ASIDE = "set aside"
    """An input record that no engine survives."""
    OUTPUT = "output"
    """An output that no topic takes."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter.

    Attributes:
        offset: where it is on the topic; its number for people.
        time_ms: when it was written, in milliseconds since 1970.
        id: its message id; None: it has none that can be read.
        kind: what it is of.
        window: path of the window that refused it, or that it left.
        reason: why.
        payload: what was refused.
        size: how many bytes it had; more than those of `payload`: the rest was cut off.
        digest: SHA-256 (hex) of all of it, where it was cut.
    """

    offset: int
    time_ms: int
    id: MessageId | None
    kind: LetterKind
    window: str
    reason: str
    payload: bytes
    size: int
    digest: str

    @property
    def source(self) -> str:
        """The topic that the record came from; empty: not known."""
        return self.id.topic if self.id else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which letters are wanted; what is empty leaves all.

    Attributes:
        window: path of a window, or its name.
        source: part of the name of the topic that the record came from.
        reason: part of the reason, in any case.
        since_ms: written then or later, in milliseconds since 1970.
    """

    window: str = ""
    source: str = ""
    reason: str = ""
    since_ms: int = 0

    def fits(self, letter: Letter) -> bool:
        """Say whether a letter is one of them."""
        return (
            (not self.window or self.window in {letter.window, letter.window.rpartition("/")[2]})
            and self.source in letter.source
            and self.reason.lower() in letter.reason.lower()
            and letter.time_ms >= self.since_ms
        )


def read_letter(message: Message) -> Letter:
    """Return the dead letter that a record of the topic is."""
    headers: Mapping[str, bytes] = dict(message.headers() or ())
    value: bytes = message.value() or b""
    reason = _text(headers, REASON_HEADER)
    unread = read_not_a_row(value)
    if unread:
        kind = LetterKind.UNREAD
    elif reason.startswith(OUTPUT_REASON):
        kind = LetterKind.OUTPUT
    else:
        kind = LetterKind.SET_ASIDE if reason.startswith(SET_ASIDE_REASON) else LetterKind.ROW
    size = _text(headers, SIZE_HEADER)
    return Letter(
        offset=message.offset(),
        time_ms=message.timestamp()[1],
        id=_id(headers.get(ID_HEADER, b"")),
        kind=kind,
        window=_text(headers, WINDOW_HEADER),
        reason=unread.reason if unread else reason,
        payload=unread.payload if unread else value,
        size=int(size) if size.isdigit() else len(value),
        digest=_text(headers, DIGEST_HEADER),
    )


def letters(bootstrap: str, plan: TopicPlan, wanted: Wanted = Wanted()) -> Iterator[Letter]:
    """Yield the letters that are wanted, the oldest first; one is in memory at a time.

    Raises:
        LogError: the topic cannot be read.
    """
    topic, offsets = plan.dead_letters, Offsets(bootstrap)
    for message in read_range(bootstrap, topic, offsets.first(topic), offsets.end(topic)):
        letter = read_letter(message)
        if wanted.fits(letter):
            yield letter


def letter_at(bootstrap: str, plan: TopicPlan, offset: int) -> Letter | None:
    """Return the letter with this offset; None: there is none, or it is gone.

    Raises:
        LogError: the topic cannot be read.
    """
    message = _record_at(bootstrap, plan.dead_letters, offset)
    return None if message is None else read_letter(message)


@dataclass(frozen=True, slots=True)
class Origin:
    """The input record that a letter came from.

    Attributes:
        value: all of it.
        position: of the input adapter in its source (JSON); empty: no adapter wrote it.
    """

    value: bytes
    position: str


def origin_of(bootstrap: str, plan: TopicPlan, letter: Letter) -> Origin | None:
    """Return the input record that a letter came from; None: it is gone, or there was none.

    Raises:
        LogError: the topic cannot be read.
    """
    if letter.id is None or letter.id.topic not in plan.inputs.values():
        return None
    message = _record_at(bootstrap, letter.id.topic, letter.id.offset)
    if message is None:
        return None
    position = _text(dict(message.headers() or ()), SOURCE_HEADER)
    return Origin(message.value() or b"", position)


def _record_at(bootstrap: str, topic: str, offset: int) -> Message | None:
    offsets = Offsets(bootstrap)
    if not offsets.first(topic) <= offset < offsets.end(topic):
        return None
    found = next(read_range(bootstrap, topic, offset, offset + 1), None)
    return found if found is not None and found.offset() == offset else None


def _text(headers: Mapping[str, bytes], name: str) -> str:
    return (headers.get(name) or b"").decode(errors="replace")


def _id(value: bytes) -> MessageId | None:
    try:
        return MessageId.parse(value)
    except ValueError:
        return None
