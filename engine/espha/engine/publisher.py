"""What commits the active engine's batches: outputs and order record, in one transaction."""

from typing import Protocol

from espha.kafka.writer import FencedWriter, Record
from espha.pipeline.job import Output, Result


class Publisher(Protocol):
    """Commits batches under the transactional id that all engines of a deployment share."""

    @property
    def committed(self) -> int:
        """Offset in the order log behind the last commit and its marker."""

    def fence(self) -> None:
        """Shut out every earlier holder of the id; what they left open is aborted then.

        Raises:
            WriterFailed: the brokers did not answer in time.
            Fenced: a still newer holder was faster.
        """

    def commit(self, result: Result, order_record: bytes) -> None:
        """Commit what a batch gave and its order record, in one transaction.

        Raises:
            WriterFailed: the outcome is unknown; only a read-back after a new `fence` can tell.
            Fenced: a newer holder exists; nothing of this batch is or will be visible.
        """

    def renewed(self) -> "Publisher":
        """Return a new publisher under the same id: each can `fence` once only."""


class Fence(Protocol):
    """What fences a transactional id fast: `espha.pipeline.session.FastFence`."""

    def fence(self, transactional_id: str) -> None:
        """Shut out the holder of an id."""


class KafkaPublisher:
    """A `Publisher` on a `FencedWriter`."""

    def __init__(self, writer: FencedWriter, fence: Fence, order_log: str) -> None:
        """Commit through `writer`, whose older holders `fence` shuts out first."""
        self._writer, self._fence, self._order_log = writer, fence, order_log

    @property
    def committed(self) -> int:
        """See `Publisher`."""
        return self._writer.committed

    def fence(self) -> None:
        """See `Publisher`."""
        self._fence.fence(self._writer.transactional_id)
        self._writer.fence()

    def commit(self, result: Result, order_record: bytes) -> None:
        """See `Publisher`."""
        self._writer.commit([*map(_record, result.outputs), Record(self._order_log, order_record)])

    def renewed(self) -> "KafkaPublisher":
        """See `Publisher`."""
        return KafkaPublisher(self._writer.renewed(), self._fence, self._order_log)


def _record(output: Output) -> Record:
    return Record(output.topic, output.value, output.headers)
