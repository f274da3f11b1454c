"""Read the topics: the output live, with the moment at which each record arrived; then the rest."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Message

from espha.checker.batches import Written
from espha.checker.expect import Read
from espha.kafka.order_log import order_records
from espha.kafka.reader import Offsets, check, last_matching, open_reader, read_range

_POLL_S = 0.2


@dataclass(slots=True)
class Followed:
    """Outputs in the order of arrival, and when each arrived (seconds since 1970)."""

    outputs: list[Read] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)


def to_read(message: Message) -> Read:
    """Return what the checker needs of a record."""
    identity = dict(message.headers() or ()).get("espha-id", b"")
    return Read(
        message.offset(),
        (message.value() or b"").decode("utf-8", "surrogateescape"),
        identity.decode(),
    )


def read_written(bootstrap: str, topic: str) -> list[Written]:
    """Return all committed records of a topic that engines write to."""
    offsets = Offsets(bootstrap)
    return [
        Written(topic, message.value(), tuple(message.headers() or ()), message.offset())
        for message in read_range(bootstrap, topic, offsets.first(topic), offsets.end(topic))
    ]


def read_all(bootstrap: str, topic: str, start: int = 0) -> list[Read]:
    """Return all committed records of a topic, from offset `start` on."""
    offsets = Offsets(bootstrap)
    first = max(start, offsets.first(topic))
    messages = read_range(bootstrap, topic, first, offsets.end(topic))
    return [to_read(message) for message in messages]


def follow(
    bootstrap: str,
    topics: Sequence[str],
    others: Callable[[], object],
    idle_s: float,
    progress: Callable[[int], None] = lambda rows: None,
) -> Followed:
    """Follow topics from their beginning until all is quiet for `idle_s` seconds.

    Quiet: no record came since, at least one came before, and `others()` (ends of other topics,
    sizes of files) says what it said before. So an interruption of the output alone does not end
    the watch while input goes on.
    """
    followed = Followed()
    start_wall, start = time.time(), time.monotonic()  # the wall clock may jump meanwhile
    last_change, seen = start, others()
    offsets = Offsets(bootstrap)
    with open_reader(bootstrap, {topic: offsets.first(topic) for topic in topics}) as consumer:
        while True:
            message = consumer.poll(_POLL_S)
            now = time.monotonic()
            if message is not None and check(message):
                followed.outputs.append(to_read(message))
                followed.arrivals.append(start_wall + now - start)
                last_change = now
                progress(len(followed.outputs))
            elif message is None and now - last_change >= idle_s:
                present = others()
                if present == seen and followed.outputs:
                    return followed
                last_change, seen = now, present


class Moving:
    """What moves while a deployment works: ends of topics, sizes of files, the order log's inputs.

    An active engine that has nothing to do commits an empty order record now and then. That is no
    work; a record that names inputs is, also where no output comes of it.
    """

    def __init__(
        self, bootstrap: str, topics: list[str], order_log: str, files: list[Callable[[], int]]
    ) -> None:
        self._bootstrap, self._order_log = bootstrap, order_log
        self._offsets, self._topics, self._files = Offsets(bootstrap), topics, files

    def __call__(self) -> tuple[int, ...]:
        """Return all of it as numbers."""
        last = last_matching(self._bootstrap, self._order_log, self._names_inputs)
        return (
            last.offset() if last else -1,
            *(self._offsets.end(topic) for topic in self._topics),
            *(size() for size in self._files),
        )

    def _names_inputs(self, message: Message) -> bool:
        return any(record.inputs for record in order_records(self._order_log, [message]))
