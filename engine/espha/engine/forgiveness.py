"""What an engine leaves as it is of a log that nobody can recompute.

Its own state counts then, though it is not what the order records say. That holds for the log that
it replays at its start, and for the digests of states in it, which the log may tell later.
"""

from collections.abc import Collection

import structlog

from espha.protocol.order import OrderRecord, Skip

_REASON = "this replica cannot process it, and no other one has a state from behind it"
_LOG = structlog.get_logger()


class Forgiveness:
    """Tells which order records need not be as the log says; none of them, by default."""

    def __init__(self, forgives: bool = False, broken: Collection[tuple[str, int]] = ()) -> None:
        """Forgive all that comes, until `end`, or nothing.

        Args:
            forgives: whether anything is forgiven.
            broken: input records (topic, offset) at which this engine has failed before.
        """
        self._forgives = forgives
        self._broken = frozenset(broken) if forgives else frozenset()
        self._until = 0

    def covers(self, sequence: int) -> bool:
        """Tell whether an order record may differ."""
        return self._forgives or sequence <= self._until

    def end(self, sequence: int) -> None:
        """Forgive only what is not behind an order record, from now on."""
        if self._forgives:
            self._forgives, self._until = False, sequence
        self._broken = frozenset()

    def skipped(self, record: OrderRecord) -> tuple[Skip, ...]:
        """Return those input records of an order record that this engine leaves out by itself."""
        if not self._broken:
            return ()
        named = {(topic, offset) for topic, offset, _ in record.skipped}
        found = tuple(
            Skip(topic, offset, _REASON)
            for topic, start, end in record.inputs
            for at, offset in sorted(self._broken - named)
            if at == topic and start <= offset < end
        )
        if found:
            _LOG.error("input records are left out here", order_record=record.sequence, left=found)
        return found
