"""The connectors of a model as feeds and sinks, and the order in which they start."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from espha.connectors.commands import adapter_properties
from espha.connectors.connectors import open_tokens
from espha.connectors.files import file_source, file_target
from espha.connectors.timers import timer
from espha.model import Connector, Project, Window
from espha.model.events import Event, Value
from espha.model.project import ConnectorGroup, ConnectorState
from espha.offline.feeds import Feed, FileFeed, TimerFeed
from espha.offline.sinks import FileSink, Sink
from espha.records.layout import FORMATS


class NotRun(Exception):  # noqa: N818 - it names a state
    """A connector has no part in this run; the text says why."""


@dataclass
class Started:
    """What connectors bring into a run when they start.

    Attributes:
        feeds: what brings events.
        sinks: what takes them.
        notes: a sentence for each connector that is not run.
        troubles: a sentence for each connector whose file cannot be opened.
    """

    feeds: list[Feed] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class Connectors:
    """Starts the connectors of a model, group by group.

    Connectors outside of all groups start first. A group starts when all groups that it waits
    for are so far: each of their connectors has the state that its entry names. What is not run
    holds nobody up.
    """

    def __init__(self, project: Project, home: Path) -> None:
        """Make ready; nothing is opened before `start`.

        Args:
            project: the model.
            home: the folder where relative names of files begin.
        """
        self._home = home
        self._all: dict[str, list[tuple[Window, Connector]]] = {}
        for path, window in project.windows.items():
            for connector in window.connectors:
                self._all.setdefault(f"{path}/{connector.name}", []).append((window, connector))
        self._waiting = list(project.groups)
        self._entries = {group.name: group.entries for group in project.groups}
        self._begun: set[str] = set()
        self._feeds: dict[str, Feed] = {}
        self._rows = {window.path: _Rows(window) for window in self._late_snapshots(project)}

    @property
    def pending(self) -> list[str]:
        """Names of the groups that have not started."""
        return [group.name for group in self._waiting]

    def start(self) -> Started:
        """Start what can start now and has not started yet."""
        started = Started()
        grouped = {name for group in self._waiting for name, _ in group.entries}
        for name in self._all:
            if name not in grouped:
                self._begin(name, started)
        while ready := self._next_group():
            self._waiting.remove(ready)
            for name, _ in ready.entries:
                self._begin(name, started)
        return started

    def observe(self, window: str, events: Iterable[Event]) -> None:
        """Note what leaves a window, for connectors that begin with a snapshot of it later."""
        if window in self._rows:
            for event in events:
                self._rows[window].take(event)

    def _late_snapshots(self, project: Project) -> list[Window]:
        late = {name for group in project.groups for name, _ in group.entries}
        return [
            window
            for name, found in self._all.items()
            for window, connector in found
            if name in late and connector.properties.get("snapshot", "").lower() == "true"
        ]

    def _next_group(self) -> ConnectorGroup | None:
        waiting = {group.name for group in self._waiting}
        for group in self._waiting:
            if not waiting.intersection(group.after) and all(
                self._so_far(name) for name in group.after
            ):
                return group
        return None

    def _so_far(self, group_name: str) -> bool:
        return all(self._has(name, state) for name, state in self._entries.get(group_name, ()))

    def _has(self, name: str, state: ConnectorState) -> bool:
        feed = self._feeds.get(name)
        return feed is None or state in {"started", "running"} or feed.finished

    def _begin(self, name: str, started: Started) -> None:
        if name in self._begun:
            return
        self._begun.add(name)
        for window, connector in self._all.get(name, ()):
            try:
                self._open(name, window, connector, started)
            except NotRun as why:
                started.notes.append(f"connector {name} is not run: {why}")
            except OSError as error:
                file = f"{error.filename}: " if error.filename else ""
                started.troubles.append(f"connector {name}: {file}{error.strerror or error}")

    def _open(self, name: str, window: Window, connector: Connector, started: Started) -> None:
        properties = _properties(connector)
        if connector.class_ == "timer":
            feed: Feed = TimerFeed(name, window, timer(properties, connector.name))
        elif connector.type == "pub":
            source = file_source(properties)
            feed = FileFeed(name, window, self._home / source.file, source)
        else:
            target = file_target(properties)
            sink = FileSink(name, window, self._home / target.file, target)
            if target.snapshot and window.path in self._rows:
                sink.write(self._rows[window.path].inserts())
            started.sinks.append(sink)
            return
        self._feeds[name] = feed
        started.feeds.append(feed)


def _properties(connector: Connector) -> dict[str, str]:
    """Return the properties of a connector that can be run here.

    Raises:
        NotRun: it cannot.
    """
    if not connector.active:
        raise NotRun("it is not active")
    properties = connector.properties
    if connector.class_ == "adapter":
        try:
            properties = {**adapter_properties(properties.get("command", ""))}
        except ValueError as error:
            raise NotRun(str(error)) from None
    elif connector.class_ not in {"fs", "timer"}:
        raise NotRun(f"class {connector.class_} needs more than files; use --input or --trace")
    if names := open_tokens(properties):
        raise NotRun(f"token @{names[0]}@ has no value; give one with --set")
    kind = properties.get("fstype", "").strip().lower()
    if kind and kind not in FORMATS:
        raise NotRun(f"fstype {kind} is not read or written here; use {' or '.join(FORMATS)}")
    return properties


class _Rows:
    """The rows that a window has by what left it."""

    def __init__(self, window: Window) -> None:
        self._key = [place for place, item in enumerate(window.fields) if item.key]
        self._rows: dict[tuple[Value, ...], Event] = {}
        self._updated: tuple[Value, ...] | None = None

    def take(self, event: Event) -> None:
        key = tuple([event.values[place] for place in self._key])
        if event.opcode != "D":
            self._rows[key] = Event("I", "N", event.values)
        elif self._updated != key:
            self._rows.pop(key, None)
        # A delete right behind an update of the same key is the old row of an update block.
        self._updated = key if event.opcode == "U" else None

    def inserts(self) -> Iterable[Event]:
        return self._rows.values()
