"""Sends lines of a pipe to an input adapter of sockets with `ids`, each one once.

The adapter keeps the number of the next line in its position, under the name of the stream. So
whoever sends the same input again under the same name, after a kill of either side, goes on where
the adapter is.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from espha.adapters.socket_input.lines import Line, Lines
from espha.adapters.socket_output.peers import peer_of
from espha.adapters.socket_output.run import Numbered
from espha.adapters.socket_output.spec import OutputSocket
from espha.backoff import Backoff
from espha.records.rows import MAX_RECORD

_LONGEST_PAUSE_S: Final = 5.0

Read = Callable[[], bytes]
"""Returns what has come, after waiting for it; empty: nothing more comes."""
Say = Callable[[str], None]


class Sent(NamedTuple):
    """What was sent.

    Attributes:
        lines: how many lines the input has; all of them are published.
        before: how many of them had been published before.
    """

    lines: int
    before: int


def send(read: Read, to: OutputSocket, stream: str, say: Say) -> Sent:
    """Return when the adapter has published all lines; wait for one that is away.

    Lines are sent as they come, at most 64 KiB of them at a time, and these are kept until they
    are committed. A line that is too long for a row is sent so that it becomes a bad record.

    Args:
        read: the input.
        to: the adapter.
        stream: what the adapter knows the input by.
        say: takes a sentence when the adapter cannot be reached, or has broken off.

    Raises:
        ConfigError: the adapter has lost lines that it had acknowledged.
    """
    link = _Link(to, stream, say)
    number = 0
    for found in _batches(read):
        lines = [(number + place, _content(line)) for place, line in enumerate(found)]
        number += len(lines)
        link.send(lines)
    return Sent(number, min(link.before, number))


def _batches(read: Read) -> Iterator[list[Line]]:
    lines = Lines()
    while data := read():
        if found := list(lines.feed(data)):
            yield found
    if last := lines.rest():
        yield [last]


def _content(line: Line) -> bytes:
    """Return what is sent of a line; of one that is too long, its beginning and blanks."""
    return line.text.ljust(MAX_RECORD + 1) if line.long else line.text


class _Link:
    """The connection to an adapter, made again whenever it ends."""

    def __init__(self, to: OutputSocket, stream: str, say: Say) -> None:
        self._to, self._stream, self._say = to, stream, say
        self._way: Numbered | None = None
        self._backoff = Backoff(longest_s=_LONGEST_PAUSE_S)
        self._said = ""
        self.before = 0
        """The number of the line with which the adapter wanted to begin."""

    def send(self, lines: list[tuple[int, bytes]]) -> None:
        while not self._has_sent(lines):
            time.sleep(self._backoff.next())

    def _has_sent(self, lines: list[tuple[int, bytes]]) -> bool:
        try:
            if self._way is None:
                self._way = Numbered(peer_of(self._to), self._stream)
                self.before = self._way.offset
            self._way.send(lines, lines[-1][0] + 1)
        except OSError as error:
            told = error.strerror or str(error)
            if told != self._said:
                self._say(f"{self._to.connect}: {told}; trying again")
            self._said = told
            return False
        self._backoff.reset()
        self._said = ""
        return True
