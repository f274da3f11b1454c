"""Notification windows. They make messages; sending them is not for a window, which does no I/O.

Each message leaves as an insert with the fields `FIELDS`; `espha.offline.senders` sends them.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from espha.languages.functional import Frame, Scope
from espha.languages.functional.catalog import Run
from espha.languages.functional.values import text, truth
from espha.model.events import BadRecord, Event
from espha.model.project import Field
from espha.windows.notification.spec import NAME, Channel, NotificationWindow
from espha.windows.shared.stage import Moment, Stage, Unit

Write = Callable[[Frame], str]


def stages(window: NotificationWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a notification window."""
    return [Notification(window, feeds[0])]


class Notification:
    """Makes a message of each row that is new or has changed, for each channel that wants it.

    A channel that is throttled makes its next message of the first event that it wants after the
    interval; what it wants in between is lost.
    """

    def __init__(self, window: NotificationWindow, feed: tuple[Field, ...]) -> None:
        scope = Scope([field.name for field in feed])
        window.context.into(scope)
        self._scope = scope
        self._frame = Frame(scope.size, window.path)
        self._channels = [_Channel(channel, scope) for channel in window.channels]
        self._made = 0

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return a unit for each message."""
        if unit[0].opcode in {"D", "SD"}:
            return ()
        frame, draws = self._frame, self._frame.draws
        frame.opcode, frame.flags, frame.row = unit[0]
        frame.clock, frame.token = at.clock, at.token
        try:
            self._scope.run(frame)
            made = [channel.message(frame) for channel in self._channels]
        except BadRecord:
            frame.draws = draws
            raise
        return [self._unit(*pair, at) for pair in zip(self._channels, made, strict=True) if pair[1]]

    def _unit(self, channel: "_Channel", message: Any, at: Moment) -> Unit:
        channel.last = at.clock
        values = (self._made, at.clock * 1_000, *message)
        self._made += 1
        return (Event("I", "N", values),)

    def state(self) -> Any:
        """Return the number of messages, of random values, and when each channel was used last."""
        return self._made, self._frame.draws, [channel.last for channel in self._channels]

    def restore(self, state: Any) -> None:
        """Go on from there."""
        self._made, self._frame.draws, last = state
        for channel, clock in zip(self._channels, last, strict=True):
            channel.last = clock


class _Channel:
    """A channel; `last` is the clock (ms) of its last message, None before the first."""

    def __init__(self, channel: Channel, scope: Scope) -> None:
        self._channel = channel
        self._deliver = None if channel.deliver is None else scope.compiled(channel.deliver)
        as_json = channel.kind == "http" and "json" in channel.content_type
        unresolved = channel.unresolved
        self._target = _template(channel.target, scope, unresolved)
        self._subject = _template(channel.subject, scope, unresolved)
        self._message = _template(channel.message, scope, unresolved, as_json=as_json)
        self.last: int | None = None

    def message(self, frame: Frame) -> tuple[Any, ...] | None:
        """Return what goes into an event; None if there is no message."""
        channel = self._channel
        if self.last is not None and frame.clock < self.last + channel.throttle:
            return None
        if self._deliver is not None and not truth(self._deliver(frame)):
            return None
        texts = (self._target(frame), self._subject(frame), self._message(frame))
        return (channel.kind, channel.name, *texts, int(channel.test))


def _template(template: str, scope: Scope, unresolved: str, *, as_json: bool = False) -> Write:
    """Return what fills in the names of a text.

    Args:
        template: the text.
        scope: what the names mean.
        unresolved: what a null becomes, and a name that means nothing.
        as_json: the text is JSON and names occur within its strings.
    """
    parts: list[str | Run] = []
    place = 0
    for match in NAME.finditer(template):
        parts.append(template[place : match.start()])
        parts.append(_value(match[1] or match[2], scope, unresolved))
        place = match.end()
    parts.append(template[place:])

    def written(part: str | Run, frame: Frame) -> str:
        if isinstance(part, str):
            return part
        value = text(part(frame))
        found = unresolved if value is None else value
        return json.dumps(found)[1:-1] if as_json else found

    return lambda frame: "".join([written(part, frame) for part in parts])


def _value(name: str | None, scope: Scope, unresolved: str) -> str | Run:
    if name is None:
        return "$"
    if name in scope.names.results or name in scope.names.fields:
        return scope.compiled(f"${name}")
    return unresolved
