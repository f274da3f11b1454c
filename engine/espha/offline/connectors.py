"""The connectors of a model as feeds and sinks, and the order in which they start."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from espha.model import Connector, Project, Window
from espha.model.events import Event
from espha.model.project import ConnectorGroup, ConnectorState
from espha.offline.feeds import Feed
from espha.offline.openers import NotRun, Setting, open_connector
from espha.offline.places import Places
from espha.offline.relay import RelayFeed
from espha.offline.rows import WindowRows
from espha.offline.sinks import Sink


@dataclass
class Started:
    """What connectors bring into a run when they start.

    Attributes:
        feeds: what brings events.
        sinks: what takes them.
        notes: a sentence for each connector that is not run, or not as the model says.
        left_out: how many connectors are not run.
        troubles: a sentence for each connector whose file cannot be opened.
    """

    feeds: list[Feed] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: int = 0
    troubles: list[str] = field(default_factory=list)


class Connectors:
    """Starts the connectors of a model, group by group.

    Connectors outside of all groups start first. A group starts when all groups that it waits
    for are so far: each of their connectors has the state that its entry names. What is not run
    holds nobody up.
    """

    def __init__(
        self,
        project: Project,
        places: Places,
        *,
        endless: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Make ready; nothing is opened before `start`.

        Args:
            project: the model.
            places: where its files are.
            endless: after how many events a feed is ended that has no end; None: never.
            say: takes what scripts print.
        """
        self._all: dict[str, list[tuple[Window, Connector]]] = {}
        for path, window in project.windows.items():
            for connector in window.connectors:
                self._all.setdefault(f"{path}/{connector.name}", []).append((window, connector))
        self._waiting = list(project.groups)
        self._entries = {group.name: group.entries for group in project.groups}
        self._begun: set[str] = set()
        self._feeds: dict[str, Feed] = {}
        self._rows = {
            window.path: WindowRows(window) for window in self._windows_to_remember(project)
        }
        self._setting = Setting(project, places, self._rows_of, endless, say)

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

    def observe(self, window: str, events: Sequence[Event]) -> None:
        """Note what leaves a window, for connectors that want its rows or its events."""
        for feed in self._feeds.values():
            if isinstance(feed, RelayFeed) and feed.source == window:
                feed.put(events)
        if window in self._rows:
            self._rows[window].take(events)

    def _rows_of(self, window: str) -> Iterable[Event]:
        rows = self._rows.get(window)
        return () if rows is None else rows.inserts()

    def _windows_to_remember(self, project: Project) -> list[Window]:
        """Return the windows whose rows a connector may want."""
        connectors = [connector for found in self._all.values() for _, connector in found]
        if any("esp_query" in one.properties.get("code", "") for one in connectors):
            return list(project.windows.values())
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
                opened = open_connector(name, window, connector, self._setting)
            except NotRun as why:
                started.notes.append(f"connector {name} is not run: {why}")
                started.left_out += 1
            except OSError as error:
                file = f"{error.filename}: " if error.filename else ""
                started.troubles.append(f"connector {name}: {file}{error.strerror or error}")
            else:
                started.notes += opened.notes
                if opened.feed is not None:
                    self._feeds[name] = opened.feed
                    started.feeds.append(opened.feed)
                if opened.sink is not None:
                    started.sinks.append(opened.sink)
