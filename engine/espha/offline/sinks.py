"""Where the events that leave a window go: to files, and into messages."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from espha.connectors.files import FileTarget
from espha.model import Window
from espha.model.events import Event
from espha.model.updates import UpdateBlocks
from espha.offline.senders import Sender, SendError
from espha.records.text import event_writer
from espha.records.xml_rows import CLOSING, OPENING, xml_writer


class Sink(Protocol):
    """Takes what leaves a window.

    Attributes:
        name: what wants it, as a user knows it.
        window: "query/window".
        goal: where it goes, as a user knows it.
        written: events taken.
    """

    name: str
    window: str
    goal: str
    written: int

    def write(self, events: Iterable[Event]) -> None:
        """Take events, in order.

        Raises:
            OSError: they cannot be taken; it is of no use to try again.
        """
        ...

    def flush(self) -> None:
        """Let others see what was taken; raises like `write`."""
        ...

    def close(self) -> None:
        """End; raises like `write`."""
        ...


class FileSink:
    """Writes what leaves a window to a file; see `Sink`."""

    def __init__(self, name: str, window: Window, path: Path, target: FileTarget) -> None:
        """Create the file, and the folders that it lies in.

        Raises:
            OSError: it cannot be written.
        """
        self.name, self.window, self.goal = name, window.path, str(path)
        self.written = 0
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
        self._file = path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n")
        write = xml_writer if target.format == "xml" else event_writer
        self._line = write(window.fields, target)
        self._target = target
        self._blocks = UpdateBlocks(window)
        # Only a window with an index makes update blocks.
        self._pairs = target.collapse
        self._header(window)

    def write(self, events: Iterable[Event]) -> None:
        """Write events, in order; see `Sink`."""
        for event in events:
            if not self._left_out(event):
                self._file.write(self._line(event))
                self._file.write("\n")
                self.written += 1

    def flush(self) -> None:
        """Let others see what was written."""
        self._file.flush()

    def close(self) -> None:
        """Write the rest and close the file."""
        if self._target.format == "xml" and not self._file.closed:
            self._file.write(f"{CLOSING}\n")
        self._file.close()

    def _left_out(self, event: Event) -> bool:
        if self._target.drop_retention_deletes and event.opcode == "D" and event.flags == "R":
            return True
        return self._pairs and self._blocks.is_old_row(event)

    def _header(self, window: Window) -> None:
        if self._target.format == "xml":
            self._file.write(f"{OPENING}\n")
        if self._target.header == "none" or self._target.format != "csv":
            return
        names = [field.name for field in window.fields]
        columns = ["opcode", "flags", *names] if self._target.header == "full" else names
        self._file.write(",".join(columns) + "\n")


class MessageSink:
    """Sends what leaves a notification window; see `Sink`.

    A message that cannot be sent is told and counted, and the next one is tried.
    """

    goal = "messages"

    def __init__(self, window: str, sender: Sender, say: Callable[[str], None]) -> None:
        self.name, self.window = "notification", window
        self.written = 0
        self._sender = sender
        self._say = say

    def write(self, events: Iterable[Event]) -> None:
        """Send messages, in order."""
        for event in events:
            try:
                self._sender.send(self.window, event)
                self.written += 1
            except SendError as error:
                self._say(f"{self.window}: {error}")

    def flush(self) -> None:
        """Messages are sent at once."""

    def close(self) -> None:
        """There is nothing open."""
