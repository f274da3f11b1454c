"""How far an output adapter is, where its target cannot keep that: on the topic `<prefix>.P`.

A socket or a server takes rows and remembers no offset of ours. So the offset behind the rows that
it has acknowledged is kept beside the positions of input adapters, and with it the end of what is
being sent. Whoever goes on after a kill sends exactly the same rows once more, under the same id:
the other side can tell that it has them.
"""

import json
from dataclasses import asdict, dataclass, fields

from espha.adapters.config import ConfigError, Job
from espha.adapters.publishing import kept_position
from espha.kafka.reader import Offsets
from espha.kafka.writer import FencedWriter, Record
from espha.protocol.records import position_key


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What the other side has of a topic.

    Attributes:
        topic_id: the id that Kafka has given the topic.
        offset: of the first record that was not acknowledged.
        until: behind the last record of what is being sent; not above `offset`: nothing is.
    """

    topic_id: str
    offset: int = 0
    until: int = 0


class KeptOffset:
    """The position of an output adapter on the topic of positions; one process at a time.

    Raises:
        ConfigError: the topic was deleted and created again since.
        LogError, WriterFailed: Kafka refuses, or another process has taken over.
    """

    def __init__(self, job: Job, topic_id: str) -> None:
        """Keep others of this adapter from writing, and read how far they were."""
        self._job = job
        self._writer = FencedWriter(job.bootstrap, f"{job.prefix}.out.{job.name}")
        self._writer.fence()
        Offsets(job.bootstrap).settled(job.positions)  # behind open transactions nothing is seen
        self.now = self._recall(topic_id)

    def keep(self, offset: int, until: int = 0) -> None:
        """Remember that all below `offset` is acknowledged, and what is sent next."""
        now = Acknowledged(self.now.topic_id, offset, until)
        content = {"adapter": self._job.name, **asdict(now)}
        value = json.dumps(content, separators=(",", ":")).encode()
        key = position_key(self._job.topic, self._job.name)
        self._writer.commit([Record(self._job.positions, value, key=key)])
        self._job.control.doing.moved()
        self.now = now

    def _recall(self, topic_id: str) -> Acknowledged:
        job = self._job
        found = kept_position(job.bootstrap, job.positions, job.topic, job.name)
        if found is None:
            return Acknowledged(topic_id)
        known = {one.name: found[one.name] for one in fields(Acknowledged) if one.name in found}
        kept = Acknowledged(**known)
        if kept.topic_id != topic_id:
            raise ConfigError(
                f"the position of adapter {job.name!r} is one in another topic of the name "
                f"{job.topic} (id {kept.topic_id}; it is {topic_id} now). Give the adapter "
                "another name to begin with the new topic's first record"
            )
        return kept
