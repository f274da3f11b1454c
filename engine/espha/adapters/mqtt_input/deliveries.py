"""Which messages the broker waits for an acknowledgement of.

The broker sends again what it has no acknowledgement of when the connection was broken, under the
same number. What this process still holds of it is the same message: it is acknowledged when its
rows are committed, and not taken a second time. In a session that the broker does not know any
more, numbers mean nothing. Nor do they where it knows the session, but not the message, as one that
was restored, or has let the message expire: then it gives the number to another message, and does
not mark that as sent again.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class Delivery:
    """A message that was taken.

    Attributes:
        number: the broker's, in the session.
        connection: on which it has come last.
        committed: its rows are.
    """

    number: int
    connection: int
    committed: bool = False


class Deliveries:
    """The messages that were taken, and not acknowledged."""

    def __init__(self) -> None:
        """Know of none, and of no connection."""
        self._open: dict[int, Delivery] = {}
        self._connection = 0
        self._acknowledge: Callable[[int], object] | None = None

    def begin(self, acknowledge: Callable[[int], object], *, known: bool) -> None:
        """Learn that there is a connection; `known`: the broker has kept the session."""
        self._connection += 1
        self._acknowledge = acknowledge
        if not known:
            self._open.clear()

    def end(self) -> None:
        """Learn that the connection has ended."""
        self._acknowledge = None

    def take(self, number: int, *, again: bool) -> Delivery | None:
        """Return the delivery of a message that has come; None: it was taken already.

        Args:
            number: the broker's, in the session.
            again: the broker says that it has sent the message before.
        """
        before = self._open.get(number)
        if before is None or not again:
            made = self._open[number] = Delivery(number, self._connection)
            return made
        before.connection = self._connection
        if before.committed:
            self._settle(before)
        return None

    def committed(self, delivery: Delivery) -> None:
        """Learn that the rows of a message are committed."""
        delivery.committed = True
        if self._open.get(delivery.number) is delivery:
            self._settle(delivery)

    def _settle(self, delivery: Delivery) -> None:
        # On another connection than its own, the broker sends it again: that has to be seen first.
        if self._acknowledge is not None and delivery.connection == self._connection:
            del self._open[delivery.number]
            self._acknowledge(delivery.number)
