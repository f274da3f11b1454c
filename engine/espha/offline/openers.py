"""A connector of a model as what brings events into a run, or takes them out of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from espha.connectors.commands import adapter_properties
from espha.connectors.connectors import open_tokens
from espha.connectors.files import (
    FileSource,
    file_source,
    file_target,
    layout_of,
    whole_property,
)
from espha.connectors.timers import interval, timer
from espha.model import Connector, Project, Window
from espha.model.events import Event
from espha.offline.feeds import Feed, FileFeed, TimerFeed
from espha.offline.outside.common import IteratorFeed, NotReached
from espha.offline.outside.database import TableSink, selected
from espha.offline.outside.kafka import TopicSink, consumed
from espha.offline.outside.web import url_arrivals, websocket_arrivals
from espha.offline.places import Found, Places
from espha.offline.relay import RelayFeed, relayed
from espha.offline.script_feed import ScriptFeed
from espha.offline.sinks import FileSink, Sink
from espha.records.layout import FILE_FORMATS
from espha.scripts.publishers.common import Publisher, PublisherError
from espha.scripts.publishers.lua import LuaPublisher
from espha.scripts.publishers.python import PythonPublisher


class NotRun(Exception):  # noqa: N818 - it names a state
    """A connector has no part in this run; the text says why."""


@dataclass(frozen=True)
class Setting:
    """What a connector finds around itself.

    Attributes:
        project: the model.
        places: where its files are.
        rows: returns the rows that a window, "query/window", has by now.
        endless: after how many events a feed is ended that has no end; None: never.
        say: takes what scripts print.
    """

    project: Project
    places: Places
    rows: Callable[[str], Iterable[Event]]
    endless: int | None
    say: Callable[[str], None]


@dataclass
class Opened:
    """What a connector becomes.

    Attributes:
        feed: what brings events; None: it brings none.
        sink: what takes them; None: it takes none.
        notes: what its user should know.
    """

    feed: Feed | None = None
    sink: Sink | None = None
    notes: list[str] = field(default_factory=list)


def open_connector(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    """Start a connector.

    Raises:
        NotRun: it cannot be run here.
        OSError: its file cannot be opened.
    """
    opener = _OPENERS.get(connector.class_)
    if opener is None:
        raise NotRun(f"class {connector.class_} is not run here; use --input or --trace")
    return opener(name, window, connector, setting)


def _file(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    return _open_file(name, window, connector, connector.properties, setting)


def _adapter(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    try:
        properties = adapter_properties(connector.properties.get("command", ""))
    except ValueError as error:
        raise NotRun(str(error)) from None
    return _open_file(name, window, connector, properties, setting)


def _open_file(
    name: str,
    window: Window,
    connector: Connector,
    properties: Mapping[str, str],
    setting: Setting,
) -> Opened:
    kind = properties.get("fstype", "").strip().lower()
    if kind and kind not in FILE_FORMATS:
        raise NotRun(f"fstype {kind} is not read or written here; use {', '.join(FILE_FORMATS)}")
    _check_tokens({key: text for key, text in properties.items() if key != "fsname"})
    source = connector.type == "pub"
    try:
        file = file_source(properties) if source else file_target(properties)
    except ValueError as error:
        raise NotRun(str(error)) from None
    found = (setting.places.source if source else setting.places.target)(file.file)
    if source and not found.note:
        _check_tokens(properties)
    opened = Opened(notes=_notes(name, found))
    if isinstance(file, FileSource):
        opened.feed = FileFeed(name, window, found.path, file)
    else:
        opened.sink = FileSink(name, window, found.path, file)
        if file.snapshot:
            opened.sink.write(setting.rows(window.path))
    return opened


def _notes(name: str, found: Found) -> list[str]:
    return [f"connector {name}: {found.note}"] if found.note else []


def _timer(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    properties = connector.properties
    _check_tokens(properties)
    return Opened(
        feed=TimerFeed(
            name,
            window,
            timer(properties, connector.name),
            most=whole_property(properties, "maxevents", 0) or None,
            endless=setting.endless,
        )
    )


def _script(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    properties = connector.properties
    _check_tokens({key: text for key, text in properties.items() if key != "code"})
    code = properties.get("code", "")
    if not code.strip():
        raise NotRun("property 'code' is missing: the script")
    function = properties.get("publish", "").strip() or "publish"
    try:
        most = whole_property(properties, "maxevents", 0) or None
        every = interval(properties.get("interval", ""))
        if connector.class_ == "python":
            publisher: Publisher = PythonPublisher(
                code,
                function,
                init=properties.get("init", "").strip(),
                home=setting.places.home,
                variables=setting.places.tokens(),
            )
        else:
            publisher = LuaPublisher(
                code,
                function,
                query=lambda wanted: _named_rows(wanted, setting),
                variables=setting.places.tokens(),
                log=lambda text: setting.say(f"{name}: {text}"),
            )
    except (PublisherError, ValueError) as error:
        raise NotRun(str(error)) from None
    layout = layout_of({"dateformat": properties.get("dateformat", "")})
    feed = ScriptFeed(
        name,
        window,
        publisher,
        interval=every,
        most=most,
        endless=setting.endless,
        date_format=layout.date_format,
    )
    return Opened(feed=feed)


def _web(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    properties = connector.properties
    most = _most(properties)
    open_ = url_arrivals if connector.class_ == "url" else websocket_arrivals
    try:
        arrivals = open_(name, window, properties, setting.places, setting.places.tokens())
    except NotReached as error:
        raise NotRun(str(error)) from None
    if connector.class_ == "websocket" and most is None:
        most = setting.endless
    return Opened(feed=IteratorFeed(name, window, arrivals, most))


def _database(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    properties = connector.properties
    _check_tokens(properties)
    try:
        if connector.type == "sub":
            return Opened(sink=TableSink(name, window, properties, setting.places))
        arrivals = selected(name, window, properties, setting.places)
    except NotReached as error:
        raise NotRun(str(error)) from None
    return Opened(feed=IteratorFeed(name, window, arrivals, _most(properties)))


def _kafka(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    properties = connector.properties
    _check_tokens(properties)
    try:
        if connector.type == "sub":
            return Opened(sink=TopicSink(name, window, properties))
        arrivals = consumed(name, window, properties)
    except (NotReached, ValueError) as error:
        raise NotRun(f"{error}; use --input or --trace") from None
    return Opened(feed=IteratorFeed(name, window, arrivals, _most(properties)))


def _project(name: str, window: Window, connector: Connector, setting: Setting) -> Opened:
    _check_tokens(connector.properties)
    try:
        source = relayed(connector.properties, setting.project)
    except ValueError as error:
        raise NotRun(str(error)) from None
    return Opened(feed=RelayFeed(name, window, source, _most(connector.properties)))


def _most(properties: Mapping[str, str]) -> int | None:
    try:
        return whole_property(properties, "maxevents", 0) or None
    except ValueError as error:
        raise NotRun(str(error)) from None


def _named_rows(wanted: str, setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield the rows of a window as dicts; it is called `window`, or `query/window`."""
    for path, window in setting.project.windows.items():
        if wanted in {path, window.name}:
            names = [field.name for field in window.fields]
            for event in setting.rows(path):
                yield dict(zip(names, event.values, strict=True))
            return


def _check_tokens(properties: Mapping[str, str]) -> None:
    if names := open_tokens(properties):
        raise NotRun(f"token @{names[0]}@ has no value; give one with --set")


_Opener = Callable[[str, Window, Connector, Setting], Opened]
_OPENERS: Final[dict[str, _Opener]] = {
    "fs": _file,
    "adapter": _adapter,
    "timer": _timer,
    "lua": _script,
    "python": _script,
    "url": _web,
    "websocket": _web,
    "db": _database,
    "kafka": _kafka,
    "project": _project,
}
