"""Connectors of class url and websocket."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import urllib3
from lxml import etree

from espha.adapters.answers import asker, read_body
from espha.mapping import Mapper, MappingError, configuration, holder
from espha.model import Window
from espha.model.events import BadRecord
from espha.model.xml import text_of
from espha.offline.arrivals import Arrival
from espha.offline.outside.common import MAX_BYTES, QUIET_SECONDS, SECONDS, NotReached
from espha.offline.places import Places
from espha.records.layout import Layout
from espha.records.text import json_object, json_reader

_MOST_REQUESTS: Final = 20


def read_configuration(
    properties: Mapping[str, str], places: Places, values: Mapping[str, str]
) -> etree._Element | None:
    """Read what property configUrl names; None: there is no such property.

    Raises:
        NotReached: it cannot be read.
    """
    address = _property(properties, "configUrl")
    if not address:
        return None
    given = dict(
        pair.partition("=")[::2] for pair in _property(properties, "properties").split(";")
    )
    try:
        return configuration(fetch(address, places), {**values, **given})
    except MappingError as error:
        raise NotReached(str(error)) from None


def fetch(address: str, places: Places) -> bytes:
    """Return what is at an address of http, https, or a file of the project.

    Raises:
        NotReached: it is not there, or too large.
    """
    if not address.lower().startswith(("http://", "https://")):
        path = places.source(address).path
        try:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise NotReached(f"{path}: {error.strerror}") from None
        return _bounded(content if len(content) <= MAX_BYTES else None, address)
    try:
        with asker().request(
            "GET",
            address,
            timeout=SECONDS,
            retries=urllib3.Retry(total=3, connect=0, read=0, redirect=3),
            preload_content=False,
        ) as answer:
            if answer.status != 200:
                raise NotReached(f"{address} answered {answer.status}")
            return _bounded(read_body(answer, MAX_BYTES), address)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise NotReached(f"{address} could not be reached: {_shortly(error)}") from None


def _shortly(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, urllib3.exceptions.ReadTimeoutError):
        return f"its answer was not complete after {SECONDS:g} s"
    return str(reason).rpartition(": ")[2] or type(error).__name__


def _bounded(content: bytes | None, address: str) -> bytes:
    if content is None:
        raise NotReached(f"{address} has more than {MAX_BYTES} bytes")
    return content


def url_arrivals(
    name: str,
    window: Window,
    properties: Mapping[str, str],
    places: Places,
    values: Mapping[str, str],
) -> Iterator[Arrival]:
    """Ask every address of a url connector once; return the events of the answers.

    Raises:
        NotReached: an address cannot be reached, or the configuration cannot be run.
    """
    root = read_configuration(properties, places, values)
    if root is None:
        raise NotReached("property 'configUrl' is missing: the configuration")
    contents: list[tuple[Mapper, str, str]] = []
    publishers = list(root.iter("url-publisher")) or [root]
    for publisher in publishers:
        mapper = _mapper(publisher, window)
        for request in publisher.iter("request"):
            address = text_of(request.find("url"))
            if len(contents) == _MOST_REQUESTS:
                raise NotReached(f"there are more than {_MOST_REQUESTS} requests")
            content = fetch(address, places).decode("utf-8", "replace")
            contents.append((mapper, address, content))
    return (
        arrival
        for mapper, address, content in contents
        for arrival in _mapped(mapper, window, address, content)
    )


def _mapper(publisher: etree._Element, window: Window) -> Mapper:
    try:
        return Mapper(publisher, window)
    except MappingError as error:
        raise NotReached(str(error)) from None


def _mapped(mapper: Mapper, window: Window, origin: str, content: str) -> Iterator[Arrival]:
    try:
        for event in mapper.events(content, 0):
            yield Arrival(window.path, origin, 0, event)
    except MappingError as error:
        yield Arrival(window.path, origin, 0, None, str(error))


def websocket_arrivals(
    name: str,
    window: Window,
    properties: Mapping[str, str],
    places: Places,
    values: Mapping[str, str],
) -> Iterator[Arrival]:
    """Connect to a WebSocket; return the events of its messages, until it is closed or quiet.

    Raises:
        NotReached: it cannot be reached, or the configuration cannot be run.
    """
    try:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect
    except ImportError:
        raise NotReached("it needs the package websockets: pip install espha[connectors]") from None
    root = read_configuration(properties, places, values)
    read = _plain(window) if root is None else _of_messages(_mapper(holder(root), window), window)
    address = _property(properties, "url")
    headers = [
        tuple(pair.partition(":")[::2])
        for pair in _property(properties, "requestHeaders").split(",")
        if ":" in pair
    ]
    try:
        socket = connect(
            address,
            open_timeout=SECONDS,
            close_timeout=1,
            max_size=MAX_BYTES,
            additional_headers=[(key.strip(), text.strip()) for key, text in headers],
        )
    except (OSError, ValueError, WebSocketException) as error:
        raise NotReached(f"{address} could not be reached: {error}") from None

    def arrivals() -> Iterator[Arrival]:
        with socket:
            while True:
                try:
                    message = socket.recv(timeout=QUIET_SECONDS)
                except (TimeoutError, OSError, WebSocketException):
                    return
                text = message if isinstance(message, str) else message.decode("utf-8", "replace")
                yield from read(name, text)

    return arrivals()


_Read = Callable[[str, str], Iterator[Arrival]]


def _of_messages(mapper: Mapper, window: Window) -> _Read:
    return lambda origin, text: _mapped(mapper, window, origin, text)


def _plain(window: Window) -> _Read:
    """Return what reads messages that are objects of JSON with the names of fields."""
    read = json_reader(window.fields, Layout(format="json"))

    def arrivals(origin: str, text: str) -> Iterator[Arrival]:
        try:
            objects = _objects(json_object(text))
        except BadRecord as refusal:
            yield Arrival(window.path, origin, 0, None, refusal.reason)
            return
        for each in objects:
            try:
                yield Arrival(window.path, origin, 0, read(each))
            except BadRecord as refusal:
                yield Arrival(window.path, origin, 0, None, refusal.reason)

    return arrivals


def _objects(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a message: one, or those of `{"events": [{"event": …}]}`."""
    events = content.get("events")
    return (
        [each for each in events if isinstance(each, dict)]
        if isinstance(events, list)
        else [content]
    )


def _property(properties: Mapping[str, str], name: str) -> str:
    """Return a property; its name is written in any case."""
    found = (text for key, text in properties.items() if key.lower() == name.lower())
    return next(found, "").strip()
