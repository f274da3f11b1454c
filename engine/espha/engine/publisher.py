"""What commits the active engine's batches: outputs and order record, in one transaction."""

from collections.abc import Callable
from typing import Protocol

from espha.pipeline.job import Result


class Publisher(Protocol):
    """Commits batches under the transactional id that all engines of a deployment share.

    It is `espha.pipeline.transactions.Transactions`.
    """

    limit_s: float
    """For so long (s) brokers keep a transaction open, from its first output on."""
    moved: Callable[[], None]
    """Hears that a fence which takes long gets on, in the thread that fences."""

    @property
    def committed(self) -> int:
        """Offset in the order log behind the last commit and its marker."""

    def fence(self) -> None:
        """Shut out every earlier holder of the id; what they left open is aborted then.

        Nobody's transaction is open on the order log when it returns.

        Raises:
            WriterFailed: the brokers did not answer in time.
            Fenced: a still newer holder was faster.
        """

    def go_on(self, end: int) -> None:
        """Note that the order log was read back up to the stable offset `end`.

        Unless the next order record gets that very offset, it is not committed: the log is not what
        was read. Brokers say where a topic ends without asking each other.
        """

    def begin(self) -> int:
        """Return the number by which the JVM knows the transaction that comes next.

        Raises:
            WriterFailed: the brokers did not answer in time.
            Fenced: a newer holder exists.
        """

    def commit(self, result: Result, order_record: bytes) -> None:
        """Commit what a batch gave and its order record, in one transaction.

        Raises:
            WriterFailed: the outcome is unknown; only a read-back after a new `fence` can tell.
                Or the order log has another end than was read, and nothing is committed.
            Fenced: a newer holder exists, or the transaction was open for longer than `limit_s`;
                nothing of this batch is or will be visible.
            TooLarge: a topic takes no record of this size; likewise.
        """

    def keep_warm(self) -> None:
        """Keep what a fence needs from growing cold; call it now and then before the fence."""

    def renewed(self) -> "Publisher":
        """Return a new publisher under the same id: each can `fence` once only."""
