"""Whether topics have got further partitions while the engine runs.

Only the first partition is read: what a producer writes to another one waits unseen, and an engine
that starts refuses such a topic, until none is left. Nothing stops here; somebody has to know.
"""

import threading
from collections.abc import Callable, Sequence

import structlog

from espha.kafka.reader import LogError, Offsets
from espha.protocol.status import DividedFacts

_EVERY_S = 60.0
_LOG = structlog.get_logger()


class DividedTopics:
    """Looks once a minute, beside the work of the engine."""

    def __init__(self, topics: Sequence[str]) -> None:
        """Know of no further partitions yet: these topics were looked at before."""
        self._topics = topics
        self._known: dict[str, int] = {}
        self._facts = DividedFacts()

    def watch(self, bootstrap: str) -> None:
        """Look once a minute, in a thread of its own; it has a connection only then."""

        def watch() -> None:
            pause = threading.Event()
            while not pause.wait(_EVERY_S):
                self.look(Offsets(bootstrap).partitions)

        threading.Thread(target=watch, name="divided", daemon=True).start()

    def facts(self) -> DividedFacts:
        """Return what the last look has found."""
        return self._facts

    def look(self, partitions: Callable[[str], int]) -> None:
        """Look at all topics; where brokers do not answer, the next look tells.

        Args:
            partitions: returns how many a topic has; raises LogError.
        """
        try:
            counts = {topic: partitions(topic) for topic in self._topics}
        except LogError as error:
            _LOG.warning("nobody says how many partitions topics have", error=str(error))
            return
        found = {topic: count for topic, count in counts.items() if count > 1}
        if found and found != self._known:
            _LOG.error(
                "topics have more than one partition, and only the first one is read: records on "
                "others wait unseen, and no engine that ends will start again; make the topic anew "
                "with one partition, or name another topic",
                topics=found,
            )
        self._known = found
        self._facts = DividedFacts(divided_topics=len(found), divided_topic=min(found, default=""))
