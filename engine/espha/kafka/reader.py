"""Reading one-partition topics exactly: committed records only, from a known offset to the end."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, TopicDescription

from espha.backoff import Backoff

PARTITION = 0
"""Every topic of a deployment has this one partition: order holds only inside a partition."""

CLIENT_TUNING = {
    # Find a new leader within milliseconds instead of the stock 100 ms to 1 s steps.
    "topic.metadata.refresh.fast.interval.ms": 20,
    # A client whose requests all were answered when a broker died looks for the new leader once a
    # second, and may need several looks. This makes it ask all the time; an answer costs little.
    "topic.metadata.refresh.interval.ms": 200,
    "metadata.max.age.ms": 900_000,
    # What a broker does not answer (it froze, or the network ate it) is asked again, not after the
    # stock minute: a consumer that waits for one answer reads nothing meanwhile.
    "socket.timeout.ms": 5_000,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "socket.connection.setup.timeout.ms": 1000,
    "log.connection.close": False,
    "log_level": 4,  # warnings
}

ClientSettings = Mapping[str, object]
"""Settings of Kafka's clients by name, such as those of security."""
NO_SETTINGS: Final[ClientSettings] = {}

_REQUEST_S, _REQUEST_AT_MOST_S = 0.3, 2.0
_ANSWER_TIMEOUT_S = 30.0
_ASK_AGAIN_S = 0.02
_ASK_AGAIN_AT_MOST_S = 0.2
_STEP_BACK = 64
_COMMITTED, _ALL = "read_committed", "read_uncommitted"
_LOG = structlog.get_logger()
_Answer = TypeVar("_Answer")
STANDSTILL_S = 30.0
"""For so long a wait for records goes on though nothing comes. Brokers may all be away."""
_SETTLED_LOOK_S = 0.005


class LogError(Exception):
    """A topic cannot be read as asked; the text names topic and offset."""


def reader(
    bootstrap: str,
    topics: dict[str, int],
    wait_ms: int = 100,
    settings: ClientSettings = NO_SETTINGS,
) -> Consumer:
    """Make a read_committed consumer that starts each topic at the given offset.

    A broker that has nothing new answers after `wait_ms`; `settings` are further ones. The consumer
    belongs to no group, commits nothing, and reports the end of a partition as an event
    (`PARTITION_EOF`), whose offset is the last stable offset that was reached.
    """
    consumer = committed_reader(
        {
            **CLIENT_TUNING,
            "bootstrap.servers": bootstrap,
            "group.id": "espha-reader",  # required by the client, unused: nothing is committed
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": wait_ms,
            "fetch.error.backoff.ms": 10,
            "queued.max.messages.kbytes": 16_384,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, PARTITION, offset) for topic, offset in topics.items()])
    return consumer


def committed_reader(settings: ClientSettings) -> Consumer:
    """Make a consumer that sees committed records only, and commits no offsets.

    It reports the end of a partition as an event (`PARTITION_EOF`).
    """
    return Consumer(
        {
            **settings,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )


def check(message: Message) -> bool:
    """Tell a record (True) from an event that passes by itself (False).

    The client reports a lost broker or a moving leader here, and goes on by itself.

    Raises:
        LogError: the offset asked for no longer exists, or the client can never go on.
    """
    error = message.error()
    if error is None:
        return True
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise LogError(
            f"topic {message.topic()}: offset {message.offset()} is gone (retention is shorter "
            "than what this reader needs, or the topic has lost its end)"
        )
    if error.fatal():
        raise LogError(f"topic {message.topic()}: {error.str()}")
    if error.code() != KafkaError._PARTITION_EOF:
        _LOG.warning("reader", topic=message.topic(), error=error.str())
    return False


class Standstill:
    """Ends a wait in which nothing moves any more."""

    def __init__(self, what: str) -> None:
        """Name what is waited for, for the message."""
        self._what = what
        self._reached: object = None
        self._since = time.monotonic()

    def look(self, reached: object) -> None:
        """Note how far the wait has come.

        Raises:
            LogError: it has been there for too long.
        """
        now = time.monotonic()
        if reached != self._reached:
            self._reached, self._since = reached, now
        elif now - self._since > STANDSTILL_S:
            raise LogError(f"{self._what}: nothing has come for {STANDSTILL_S:.0f} s")


class Ends(NamedTuple):
    """Where a topic ends."""

    stable: int
    """Last stable offset: every record below it is committed or aborted."""
    last: int
    """Offset behind the last record, committed or not."""

    @property
    def open(self) -> bool:
        """Whether somebody's transaction is open."""
        return self.stable < self.last


class Offsets:
    """Asks brokers for a topic's first offset, last stable offset and id, on kept connections.

    Offsets are a consumer's to ask for. `AdminClient.list_offsets` asks a broker that is gone
    again and again without a pause, which takes two processors for as long as the question lasts.
    """

    def __init__(self, bootstrap: str, settings: ClientSettings = NO_SETTINGS) -> None:
        """Ask these servers; `settings` are further ones of the clients, such as security."""
        self._settings = {**CLIENT_TUNING, "bootstrap.servers": bootstrap, **settings}
        self._consumers: dict[str, Consumer] = {}
        self._admin: AdminClient | None = None

    def first(self, topic: str) -> int:
        """Return the offset of the oldest record that the topic still holds."""
        return self._ask(topic, lambda wait_s: self._offset(topic, OFFSET_BEGINNING, wait_s))

    def end(self, topic: str, limit_s: float = _ANSWER_TIMEOUT_S) -> int:
        """Return the last stable offset: every record below it is committed or aborted.

        Raises:
            LogError: the brokers have not answered for `limit_s`.
        """
        return self._ask(topic, lambda wait_s: self._offset(topic, OFFSET_END, wait_s), limit_s)

    def written(self, topic: str) -> int:
        """Return the offset behind the newest record, committed or not."""
        return self._ask(topic, lambda wait_s: self._offset(topic, OFFSET_END, wait_s, _ALL))

    def ends(self, topic: str) -> Ends:
        """Return the last stable offset, and the one behind the last record."""
        return self._ask(
            topic,
            lambda wait_s: Ends(
                self._offset(topic, OFFSET_END, wait_s),
                self._offset(topic, OFFSET_END, wait_s, _ALL),
            ),
        )

    def keep_warm(self, topic: str) -> None:
        """Ask for both ends, so that a later question finds its connections there.

        Clients that hold on to a leader that is gone are replaced.
        """
        for _ in range(2):
            try:
                for level in (_COMMITTED, _ALL):
                    self._offset(topic, OFFSET_END, _REQUEST_S, level)
            except KafkaException:
                self._consumers.clear()
            else:
                return

    def settled(self, topic: str) -> int:
        """Return the offset behind the newest record, when all before it is committed or aborted.

        Whoever has been fenced has nothing open any more; but others write to the topic, too, and
        behind the begin of their transactions nobody sees what is committed.

        Raises:
            LogError: somebody's transaction stays open for long.
        """
        end, standstill = self.written(topic), Standstill(f"topic {topic}: an open transaction")
        while (stable := self.end(topic)) < end:
            standstill.look(stable)
            time.sleep(_SETTLED_LOOK_S)
        return end

    def topic_id(self, topic: str) -> str:
        """Return Kafka's id of the topic, which differs when it was deleted and made anew."""
        return self._ask(topic, lambda _: str(self._description(topic).topic_id))

    def undivided(self, topic: str) -> str:
        """Return Kafka's id of the topic, all of which is in its first partition.

        Raises:
            LogError: it has more than one; nobody would ever read what is in the others.
        """
        found = self._ask(topic, lambda _: self._description(topic))
        count = len(found.partitions)
        if count != 1:
            raise LogError(
                f"topic {topic} has {count} partitions, and only the first one is read: records on "
                "others would be lost; no partition can be taken away again, so make the topic "
                "anew with one, or name another topic"
            )
        return str(found.topic_id)

    def largest(self, topic: str) -> int:
        """Return how large (bytes) a message may be that the topic takes: `max.message.bytes`."""
        return self._ask(topic, lambda _: self._setting(topic, "max.message.bytes"))

    def partitions(self, topic: str) -> int:
        """Return how many partitions the topic has."""
        return self._ask(topic, lambda _: len(self._description(topic).partitions))

    def _ask(
        self, topic: str, ask: Callable[[float], _Answer], limit_s: float = _ANSWER_TIMEOUT_S
    ) -> _Answer:
        # A broker's death shows here in a dozen ways, and all of them pass, but not for a client
        # that holds an old leader epoch, or waits for a leader that is dead: each attempt has a new
        # one. It costs threads and connections, so attempts become longer and rarer while Kafka is
        # away.
        deadline = time.monotonic() + limit_s
        pause = Backoff(_ASK_AGAIN_S, _ASK_AGAIN_AT_MOST_S)
        wait = Backoff(_REQUEST_S, _REQUEST_AT_MOST_S)
        while True:
            try:
                return ask(min(wait.next(), limit_s))
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise LogError(f"topic {topic}: {error.args[0].str()}") from None
                time.sleep(pause.next())
                self._consumers.clear()
                self._admin = None

    def _offset(self, topic: str, which: int, wait_s: float, level: str = _COMMITTED) -> int:
        consumer = self._consumers.get(level)  # another thread may forget it meanwhile
        if consumer is None:
            consumer = self._consumers[level] = Consumer(
                {
                    **self._settings,
                    "group.id": "espha-offsets",  # required by the client, and never joined
                    "isolation.level": level,
                }
            )
        asked = TopicPartition(topic, PARTITION, which)
        (answer,) = consumer.offsets_for_times([asked], wait_s)
        if answer.error is not None:
            raise KafkaException(answer.error)
        if answer.offset < 0:  # a broker that has just begun to lead does not know it yet
            raise KafkaException(KafkaError(KafkaError.OFFSET_NOT_AVAILABLE))
        return int(answer.offset)

    def _description(self, topic: str) -> TopicDescription:
        return described(self._connected_admin(), topic, _REQUEST_AT_MOST_S)

    def _setting(self, topic: str, name: str) -> int:
        asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
        futures = self._connected_admin().describe_configs(
            [asked], request_timeout=_REQUEST_AT_MOST_S
        )
        return int(futures[asked].result()[name].value)

    def _connected_admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self._settings)
        return self._admin


def described(admin: AdminClient, topic: str, wait_s: float) -> TopicDescription:
    """Ask once what a topic is.

    Raises:
        KafkaException: nobody has answered in time, or there is none.
    """
    futures = admin.describe_topics(TopicCollection([topic]), request_timeout=wait_s)
    found: TopicDescription = futures[topic].result()
    return found


def records_behind(consumer: Consumer, place: TopicPartition, reached: int) -> int:
    """Return how many records stand behind an offset, as far as the brokers' last answer tells."""
    end: int = consumer.get_watermark_offsets(place, cached=True)[1]
    return max(0, end - reached)


@contextmanager
def open_reader(
    bootstrap: str, topics: dict[str, int], settings: ClientSettings = NO_SETTINGS
) -> Iterator[Consumer]:
    """Like `reader`, closed at the end of the block."""
    consumer = reader(bootstrap, topics, settings=settings)
    try:
        yield consumer
    finally:
        consumer.close()


def read_range(
    bootstrap: str, topic: str, start: int, end: int, settings: ClientSettings = NO_SETTINGS
) -> Iterator[Message]:
    """Yield the committed records with start ≤ offset < end; end at most the stable offset."""
    if start >= end:
        return
    with open_reader(bootstrap, {topic: start}, settings) as consumer:
        while True:
            message = consumer.poll(_ANSWER_TIMEOUT_S)
            if message is None:
                raise LogError(f"topic {topic}: no answer in {_ANSWER_TIMEOUT_S:.0f} s")
            if check(message):
                if message.offset() < end:
                    yield message
                if message.offset() >= end - 1:
                    return
            elif message.error().code() == KafkaError._PARTITION_EOF and message.offset() >= end:
                return


def records_backwards(bootstrap: str, topic: str, end: int | None = None) -> Iterator[Message]:
    """Yield a topic's committed records before offset `end` (None: all), the newest first.

    All of a step are in memory, and steps grow: for who stops soon. Else see `last_matching`.
    """
    for start, stop in ranges_backwards(bootstrap, topic, end=end):
        yield from reversed(list(read_range(bootstrap, topic, start, stop)))


def last_matching(
    bootstrap: str,
    topic: str,
    wanted: Callable[[Message], bool],
    settings: ClientSettings = NO_SETTINGS,
) -> Message | None:
    """Return the newest committed record that is wanted; None: the whole topic has none.

    It holds one record in memory, however long the topic is.
    """
    for start, end in ranges_backwards(bootstrap, topic, settings):
        found = None
        for message in read_range(bootstrap, topic, start, end, settings):
            if wanted(message):
                found = message
        if found is not None:
            return found
    return None


def ranges_backwards(
    bootstrap: str, topic: str, settings: ClientSettings = NO_SETTINGS, end: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield ranges of offsets that cover a topic from `end` to its beginning, growing.

    Args:
        bootstrap: servers.
        topic: which one.
        settings: further ones of the clients.
        end: a stable offset; None: the one that there is now.
    """
    offsets = Offsets(bootstrap, settings)
    first = offsets.first(topic)
    end = offsets.end(topic) if end is None else end
    step = _STEP_BACK
    while end > first:
        start = max(first, end - step)
        yield start, end
        end, step = start, step * 2  # control markers and aborted records may fill many offsets


def last_record(bootstrap: str, topic: str) -> Message | None:
    """Return the newest committed record of a topic, or None where there is none."""
    return next(records_backwards(bootstrap, topic), None)
