"""Sentences that become one message."""

from collections.abc import Iterable

# So many sentences fit a message that people still read.
SHOWN = 3


def listed(sentences: Iterable[str]) -> str:
    """Return the first sentences, and how many more there are."""
    said = list(sentences)
    more = [f"And {len(said) - SHOWN} more."] if len(said) > SHOWN else []
    return " ".join([*said[:SHOWN], *more])
