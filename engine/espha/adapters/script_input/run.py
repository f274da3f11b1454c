"""Publishes what a script makes: the events of a call are one transaction, with its number.

A script begins anew in each process. What was committed is there once; a call whose events were not
committed is made again by whoever goes on.
"""

import errno
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, NoReturn

import structlog

from espha.adapters.config import Job
from espha.adapters.formats.encodings import wrong_bytes
from espha.adapters.formats.incoming import record_writer, topic_form, within
from espha.adapters.formats.refused import not_a_row
from espha.adapters.publishing import publish
from espha.adapters.script_input.spec import InputScript
from espha.model import Window
from espha.protocol.status import InputProgress, Lag
from espha.records.published import Made, item_reader
from espha.scripts.publishers.common import Item, Publisher, PublisherError
from espha.scripts.publishers.lua import LuaPublisher
from espha.scripts.publishers.python import PythonPublisher

MOST_EVENTS: Final = 10_000
"""Of one call: they are one transaction."""
MOST_BYTES: Final = 8 << 20
_LOG = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Position:
    """How far the adapter is.

    Attributes:
        adapter: its name.
        calls: how many calls have given events.
        events: how many these were.
        done: the script has said that there are no more.
    """

    adapter: str
    calls: int = 0
    events: int = 0
    done: bool = False

    @classmethod
    def of(cls, adapter: str, found: Mapping[str, Any] | None) -> "Position":
        """Read a position back; None: there was no call yet."""
        known = found or {}
        calls, events = (int(known.get(name, 0)) for name in ("calls", "events"))
        return cls(adapter, calls, events, bool(known.get("done")))

    def to_header(self) -> bytes:
        """Return it as an object of JSON."""
        content: dict[str, Any] = {
            "adapter": self.adapter,
            "calls": self.calls,
            "events": self.events,
        }
        if self.done:
            content["done"] = True
        return json.dumps(content, separators=(",", ":")).encode()

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        text = f"call {self.calls}, {self.events} events{', done' if self.done else ''}"
        return InputProgress(rows=rows, position=text, line=self.events)


Open = Callable[[], Publisher]
"""Loads the script; raises PublisherError."""


def run(job: Job, given: InputScript) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    with tempfile.TemporaryDirectory() as empty:
        home = given.home or Path(empty)
        publish(
            job,
            lambda found: Calls(
                given, job.window, Position.of(job.name, found), lambda: opened(given, home)
            ),
        )


def opened(given: InputScript, home: Path) -> Publisher:
    """Load a script.

    Raises:
        PublisherError: it cannot be used.
    """
    variables = {"ESP_PROJECT_HOME": str(home), "ESP_PROJECT_OUTPUT": str(home / "output")}
    if given.language == "python":
        init = given.init or ""
        return PythonPublisher(given.code, given.publish, init=init, home=home, variables=variables)
    return LuaPublisher(
        given.code,
        given.publish,
        query=_no_rows,
        variables=variables,
        log=lambda text: _LOG.info(text[:1000]),
    )


def _no_rows(_: str) -> NoReturn:
    raise PublisherError("esp_query asks a window, which an adapter has not; only `espha run` has")


class Calls:
    """The events of a script; see `espha.adapters.publishing.Source`."""

    def __init__(
        self,
        given: InputScript,
        window: Window,
        position: Position,
        open_: Open,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Go on behind a position; the script is loaded with the first poll."""
        self.name = f"script in {given.language}"
        self._given, self._position, self._open, self._now = given, position, open_, now
        self._form = topic_form(window)
        self._write = record_writer(window, self._form)
        self._read = item_reader(window, given.date_format)
        self._script: Publisher | None = None
        self._due = 0.0

    @property
    def position(self) -> Position:
        """Behind the last call."""
        return self._position

    def poll(self) -> Sequence[tuple[bytes, Position]]:
        """Call the script if it is time; see `espha.adapters.publishing.Source`."""
        now = self._now()
        if self._ended or now < self._due:
            return []
        try:
            self._script = self._script or self._open()
            items, done = self._script.publish(int(now * 1000))
            rows = self._rows(items)
        except PublisherError as error:
            raise OSError(errno.EIO, f"the script has failed: {error}") from None
        self._due = now + self._given.interval_ms / 1000
        at = self._position
        # Without a row nothing says that it is done: whoever goes on asks once more.
        self._position = replace(
            at, calls=at.calls + bool(rows), events=at.events + len(rows), done=done
        )
        return [(row, self._position) for row in rows]

    @property
    def _ended(self) -> bool:
        most = self._given.max_events
        return self._position.done or (most is not None and self._position.events >= most)

    def _rows(self, items: Iterable[Item]) -> list[bytes]:
        where = f"{self.name}, call {self._position.calls + 1}"
        made = islice((one for item in items for one in self._read(item)), MOST_EVENTS + 1)
        rows, size = [], 0
        for one in made:
            rows.append(self._row(one, where))
            size += len(rows[-1])
            if len(rows) > MOST_EVENTS or size > MOST_BYTES:
                raise PublisherError(
                    f"a call has given more than {MOST_EVENTS} events, or {MOST_BYTES} bytes"
                )
        return rows

    def _row(self, made: Made, where: str) -> bytes:
        if made.event is not None:
            with suppress(UnicodeEncodeError):  # then it is no row either
                record = self._write(made.event).encode()
                return within(record, record, where, self._form)
        place = f"{where}, line {made.line}" if made.line else where
        content = json.dumps(made.content, default=str).encode()
        reason = made.reason or wrong_bytes(content)
        return not_a_row(f"{place}: {reason}", content, self._form)

    def advance(self, position: Mapping[str, Any]) -> None:
        """Go to a position; see `espha.adapters.publishing.Source`."""
        self._position = Position.of(self._position.adapter, position)

    def behind(self) -> Lag | None:
        """Nobody knows what a script would give."""
        return None

    def committed(self) -> None:
        """Nobody waits for it."""

    def close(self) -> None:
        """End the script; the next poll loads it anew."""
        if self._script is not None:
            self._script.close()
            self._script = None
