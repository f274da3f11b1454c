"""The end of an order log, as a test plays it."""

from espha.kafka.reader import LogError


class PlayedLog:
    """How far the log is written and read, and whether brokers tell its end."""

    def __init__(self) -> None:
        """All is read."""
        self.written = self.read = 7
        self.answers = True
        self.asked = 0

    def at(self, end: int) -> bool:
        """Tell whether the order log is read so far."""
        return self.read >= end

    def end(self, limit_s: float) -> int:
        """Return the log's end, or do not answer."""
        self.asked += 1
        if not self.answers:
            raise LogError("no answer")
        return self.written
