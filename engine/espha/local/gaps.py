"""The pause at the last take-over, as the order log tells it."""

import json

from espha.connectors.topics import topic_plan
from espha.kafka.reader import LogError, Offsets, open_reader
from espha.local.state import PREFIX, Folder, Spec
from espha.reader import read_project

_ANSWER_S = 2.0


class LastGap:
    """Finds the order record with which the last take-over began, and the one before it."""

    def __init__(self, folder: Folder, spec: Spec) -> None:
        project = read_project(folder.model.read_bytes(), "model.xml")
        self._topic = topic_plan(project, PREFIX).order_log
        self._bootstrap = spec.bootstrap
        self._known: dict[int, str] = {}

    def words(self, epoch: int) -> str:
        """Return how long no batch was committed when `epoch` began; nothing, where none is known.

        Args:
            epoch: the newest one.
        """
        if epoch < 2:
            return ""
        if epoch not in self._known:
            try:
                found = self._find(epoch)
            except (LogError, ValueError, KeyError):
                return ""
            if found is None:
                return ""
            self._known[epoch] = f"{found} ms"
        return self._known[epoch]

    def _find(self, epoch: int) -> int | None:
        """Search by halves: epochs only grow along the log."""
        offsets = Offsets(self._bootstrap)
        low, high = offsets.first(self._topic), offsets.end(self._topic)
        last_of_old, first_of_new = None, None
        while low < high:
            middle = (low + high) // 2
            record = self._record(middle, high)
            if record is None or record[1] >= epoch:
                high = middle
                first_of_new = record or first_of_new
            else:
                low, last_of_old = record[0] + 1, record
        if first_of_new is None or last_of_old is None:
            return None
        return max(0, first_of_new[2] - last_of_old[2])

    def _record(self, offset: int, end: int) -> tuple[int, int, int] | None:
        """Return offset, epoch and Kafka's time (ms) of the first record from an offset on."""
        with open_reader(self._bootstrap, {self._topic: offset}) as consumer:
            message = consumer.poll(_ANSWER_S)
            if message is None or message.error() or message.offset() >= end:
                return None
            return (
                message.offset(),
                int(json.loads(message.value())["epoch"]),
                message.timestamp()[1],
            )
