"""Growing pauses between tries."""


class Backoff:
    """Pauses in seconds, each twice as long as the one before, up to the longest."""

    def __init__(self, first_s: float = 0.1, longest_s: float = 30.0) -> None:
        self._first, self._longest = first_s, longest_s
        self._next = first_s

    def next(self) -> float:
        """Return the next pause."""
        pause, self._next = self._next, min(self._next * 2, self._longest)
        return pause

    def reset(self) -> None:
        """Start again with the shortest one: something worked."""
        self._next = self._first
