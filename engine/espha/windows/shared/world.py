"""What the scripts of a project share: properties, snippets, and events that they publish."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from espha.model import Project
from espha.model.events import BadRecord, Event
from espha.model.project import Window
from espha.scripts import Options, ScriptError
from espha.scripts.lua import LuaScript
from espha.scripts.packed import listed, packed, unpacked
from espha.scripts.world import World
from espha.windows.shared.library import Snippet
from espha.windows.shared.script import SPOKEN, opcode_of
from espha.windows.shared.script_values import taker

MAX_PUBLISHED: Final = 10_000
"""Most events that scripts may publish because of one event."""

MAX_PROPERTIES: Final = 10_000
MAX_PROPERTY: Final = 1_000_000
"""Most bytes of one property."""

_LOG = logging.getLogger(__name__)

Published = tuple[str, Event]


@runtime_checkable
class Sharing(Protocol):
    """A stage with a script that can share something with the others."""

    def share(self, world: World) -> None:
        """Give the script its world."""
        ...


class Subscription(NamedTuple):
    """What leaves `window` is given to the function `handler` of a snippet."""

    snippet: str
    window: str
    handler: str


class ProjectWorld:
    """The world of all scripts of a project.

    Snippets begin with the first event. What scripts publish waits until the event at hand has
    gone through all windows.
    """

    def __init__(
        self, project: Project, snippets: Sequence[Snippet], rows: Callable[[str], Iterable[Any]]
    ) -> None:
        """Load the snippets.

        Args:
            project: the model.
            snippets: those in Lua.
            rows: returns the rows that a window keeps.
        """
        self._windows = project.windows
        self._rows = rows
        self._properties: dict[str, tuple[int, bytes | None]] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._waiting: list[tuple[str, bytes]] = []
        self._numbers = 0
        self._begun = False
        self._due: dict[tuple[str, int], int | None] = {}
        self._clock, self._token = 0, 0
        self._snippets = {snippet.name: snippet for snippet in snippets}
        self._scripts = {snippet.name: self._loaded(snippet) for snippet in snippets}

    def _loaded(self, snippet: Snippet) -> LuaScript:
        options = Options(
            modules=dict(snippet.modules),
            init=snippet.init,
            files={file.name: file.content() for file in snippet.files},
        )
        script = LuaScript(snippet.text, "", f"snippet {snippet.name}", [], [], options=options)
        script.world = _SnippetWorld(self, snippet.name)
        return script

    def begin(self, clock: int, token: int) -> None:
        """Let the snippets begin, if they have not; scripts see this moment from now on."""
        self._clock, self._token = clock, token
        if self._begun:
            return
        self._begun = True
        for name, snippet in self._snippets.items():
            begin = partial(self._scripts[name].begin, clock, token)
            self._guarded(name, "its beginning", begin)
            for number in range(len(snippet.threads)):
                self._due[name, number] = clock
        self.expire(clock)

    def due(self) -> int | None:
        """Return when a repeated function of a snippet is called next."""
        return min((due for due in self._due.values() if due is not None), default=None)

    def expire(self, clock: int) -> None:
        """Call the repeated functions whose time has come; one that returns true is done."""
        self._clock = max(clock, self._clock)
        for (name, number), due in list(self._due.items()):
            if due is None or due > clock:
                continue
            thread = self._snippets[name].threads[number]
            call = partial(self._invoke, name, thread.function, ())
            answer = self._guarded(name, thread.function, call)
            done = answer is True or not thread.every_ms
            self._due[name, number] = None if done else clock + thread.every_ms

    def saw(self, outputs: Sequence[Published]) -> None:
        """Tell the subscribers what has left the windows."""
        for subscription in list(self._subscriptions.values()):
            events = [
                _table(event, self._windows[path])
                for path, event in outputs
                if path == subscription.window
            ]
            if events:
                self._handle(subscription, events)

    def _handle(self, subscription: Subscription, events: Sequence[Mapping[str, Any]]) -> None:
        name, _, handler = subscription
        self._guarded(name, handler, partial(self._invoke, name, handler, (events,)))

    def _invoke(self, name: str, function: str, arguments: Sequence[Any]) -> Any:
        answer = self._scripts[name].invoke(function, packed(arguments), self._clock, self._token)
        results = unpacked(answer)
        return results.get(1) if isinstance(results, dict) else None

    def _guarded(self, name: str, what: str, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except ScriptError as error:
            _LOG.error("snippet %s: %s: %s", name, what, error)
            return None

    def take(self) -> list[Published]:
        """Return the events that scripts have published since the last call."""
        waiting, self._waiting = self._waiting, []
        found: list[Published] = []
        for path, data in waiting:
            for row in listed(unpacked(data)):
                try:
                    found.append((path, _event(row, self._windows[path])))
                except BadRecord as refusal:
                    _LOG.error("window %s: what a script published: %s", path, refusal.reason)
        return found

    def path_of(self, name: str) -> str:
        """Return the path of a window that a script names, with or without its query.

        Raises:
            ScriptError: there is none, or there are several.
        """
        wanted = "/".join(name.split("/")[-2:])
        found = [path for path, window in self._windows.items() if wanted in (path, window.name)]
        if len(found) != 1:
            why = "several windows are" if found else "no window is"
            raise ScriptError(f"{why} called {name!r}; write query/window")
        return found[0]

    def get(self, name: str) -> bytes | None:
        """Return a property; see `World`."""
        return self._properties.get(name, (0, None))[1]

    def set(self, name: str, value: bytes | None) -> None:
        """Change a property."""
        if value is not None and len(value) > MAX_PROPERTY:
            raise ScriptError(f"property {name!r} has more than {MAX_PROPERTY} bytes")
        if name not in self._properties and len(self._properties) >= MAX_PROPERTIES:
            raise ScriptError(f"there are more than {MAX_PROPERTIES} properties")
        self._properties[name] = (self.version(name) + 1, value)

    def version(self, name: str) -> int:
        """Return how often a property has been changed."""
        return self._properties.get(name, (0, None))[0]

    def call(self, snippet: str, function: str, arguments: bytes) -> bytes:
        """Call a function of a snippet."""
        if snippet not in self._scripts:
            raise ScriptError(f"there is no snippet {snippet!r}")
        return self._scripts[snippet].invoke(function, arguments, self._clock, self._token)

    def publish(self, window: str, events: bytes) -> None:
        """Put events into a source window, later."""
        path = self.path_of(window)
        if self._windows[path].type != "source":
            raise ScriptError(f"{window} is no source window")
        self._waiting.append((path, events))

    def query(self, window: str) -> bytes:
        """Return the rows that a window keeps."""
        path = self.path_of(window)
        fields = self._windows[path].fields
        rows = [
            {field.name: value for field, value in zip(fields, row, strict=True)}
            for row in self._rows(path)
        ]
        return packed({"events": rows})

    def subscribe(self, window: str, handler: str, snapshot: bool) -> int:
        """Refuse: only snippets subscribe."""
        raise ScriptError("only a snippet can subscribe to windows")

    def unsubscribe(self, number: int) -> None:
        """End a subscription."""
        self._subscriptions.pop(number, None)

    def add(self, snippet: str, window: str, handler: str) -> int:
        """Begin a subscription; return its number."""
        self._numbers += 1
        self._subscriptions[self._numbers] = Subscription(snippet, self.path_of(window), handler)
        return self._numbers

    def state(self) -> Any:
        """Return all of it as plain data."""
        return {
            "properties": dict(self._properties),
            "subscriptions": {n: tuple(each) for n, each in self._subscriptions.items()},
            "numbers": self._numbers,
            "begun": self._begun,
            "due": dict(self._due),
            "scripts": {name: script.state() for name, script in self._scripts.items()},
        }

    def restore(self, state: Any) -> None:
        """Become what `state()` was of."""
        self._properties = dict(state["properties"])
        self._subscriptions = {n: Subscription(*one) for n, one in state["subscriptions"].items()}
        self._numbers, self._begun = state["numbers"], state["begun"]
        self._due = dict(state["due"])
        self._waiting = []
        for name, script in self._scripts.items():
            script.restore(state["scripts"][name])


class _SnippetWorld:
    """The world as a snippet sees it: it can subscribe to windows."""

    def __init__(self, world: ProjectWorld, name: str) -> None:
        self._world, self._name = world, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def subscribe(self, window: str, handler: str, snapshot: bool) -> int:
        """Have a function called with what leaves a window."""
        return self._world.add(self._name, window, handler)


def _table(event: Event, window: Window) -> Mapping[str, Any]:
    row = {field.name: value for field, value in zip(window.fields, event.values, strict=True)}
    return {**row, "_opcode": SPOKEN[event.opcode]}


def _event(row: Any, window: Window) -> Event:
    if not isinstance(row, dict):
        raise BadRecord("an event is to be a table")
    values = []
    for field in window.fields:
        try:
            values.append(taker(field.type)(row.get(field.name.encode())))
        except ValueError as error:
            raise BadRecord(f"field {field.name}: {error}") from None
    chosen = row.get(b"_opcode")
    return Event("I" if chosen is None else opcode_of(chosen), "N", tuple(values))
