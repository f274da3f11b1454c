"""Notification windows: messages that are made of events, and the channels that they go to."""

import re
from collections.abc import Iterable
from typing import Final, Literal, cast
from urllib.parse import urlsplit

from lxml import etree

from espha.languages.functional import FunctionError, Scope
from espha.languages.functional.from_xml import Context, read_context, remarked
from espha.languages.functional.parse import parse
from espha.model.project import Field, Part, Window
from espha.model.schema import read_schema
from espha.model.xml import attributes, boolean, children, only_child, text_of
from espha.windows.shared.spec import Reading, WindowType

ChannelKind = Literal["email", "sms", "mms", "log", "http"]

FIELDS: Final = (
    Field("id", "int64", key=True),
    Field("time", "stamp"),
    Field("channel", "string"),
    Field("name", "string"),
    Field("target", "string"),
    Field("subject", "string"),
    Field("message", "string"),
    Field("test", "int32"),
)
"""Schema of every notification window: one event for each delivery."""

NAME: Final = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_.-]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
"""`$name` and `${name}` in texts are a field or the result of a function, `$$` is a dollar."""

_INFO: Final[dict[str, frozenset[str]]] = {
    "email": frozenset({"sender", "recipients", "subject", "from", "to"}),
    "sms": frozenset({"sender", "subject", "from", "gateway", "phone"}),
    "mms": frozenset({"sender", "subject", "from", "gateway", "phone"}),
    "log": frozenset({"subject"}),
    "http": frozenset({"url", "subject", "content-type"}),
}
"""What a channel can be told, by its kind."""

_ATTRIBUTES: Final = frozenset({"name", "throttle-interval", "test", "unresolved-text"})
_TARGETS: Final = ("recipients", "to", "phone", "url")
_NOT_SENT: Final = frozenset({"email", "sms", "mms"})
_CONTENTS: Final = frozenset({"text-content", "html-content", "image-content"})
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
_INTERVAL: Final = re.compile(r"([0-9]{1,9})\s*([a-z]*?)s?")
_CONTENT_TYPE: Final = re.compile(r"[A-Za-z0-9.+/-]+(?:; ?charset=[A-Za-z0-9-]+)?")


class Channel(Part):
    """A way for messages.

    Attributes:
        kind: what carries them; only `log` and `http` are sent, the others are logged.
        name: its name; the kind, if it has none.
        deliver: function that says whether an event is worth a message; None: each one.
        throttle: milliseconds from one message to the next, at least.
        test: messages are made, but not sent.
        target: whom it goes to.
        subject: its subject.
        content_type: of the message, for `http`.
        message: its text.
        unresolved: what stands in texts for a name without a value.
    """

    kind: ChannelKind
    name: str
    deliver: str | None
    throttle: int
    test: bool
    target: str
    subject: str
    content_type: str
    message: str
    unresolved: str = ""


class NotificationWindow(Window):
    """Makes a message of an event, for each channel that wants one."""

    type: Literal["notification"] = "notification"
    context: Context = Context()
    channels: tuple[Channel, ...]


def _read(reading: Reading) -> NotificationWindow | None:
    findings, element = reading.findings, reading.element
    before = len(findings.problems)
    scope = Scope([field.name for field in reading.feed])
    context = read_context(element.findall("function-context"), scope, findings)
    _check_schema(reading, scope)
    for smtp in element.findall("smtp"):
        findings.warn(smtp, "no mail is sent; what would be sent is logged")
    block = only_child(element, "delivery-channels", findings)
    if block is None:
        reading.refuse("needs <delivery-channels> with at least one channel")
        return None
    found = [
        _Reader(each, scope, reading).read() for each in children(block, frozenset(_INFO), findings)
    ]
    if not found:
        findings.refuse(block, f"needs a channel: {', '.join(_INFO)}")
    channels = tuple(channel for channel in found if channel is not None)
    names = [channel.name for channel in channels if channel.kind == "http"]
    if len(set(names)) < len(names):
        findings.refuse(block, "two <http> have one name; give each a name of its own")
    if len(findings.problems) > before:
        return None
    return NotificationWindow(**reading.common, fields=FIELDS, context=context, channels=channels)


def _check_schema(reading: Reading, scope: Scope) -> None:
    """Warn of fields without a value; texts can use every name, with or without a schema."""
    element = reading.element
    if element.find("schema") is None and element.find("schema-string") is None:
        return
    known = _names(scope)
    for field in read_schema(element, reading.findings, needs_key=False) or ():
        if field.name not in known:
            reading.findings.warn(element, f"nothing gives field {field.name!r} a value")


def _names(scope: Scope) -> set[str]:
    return {*scope.names.fields, *scope.names.results}


class _Reader:
    """Reads one channel."""

    def __init__(self, element: etree._Element, scope: Scope, reading: Reading) -> None:
        self._element = element
        self._kind = cast(ChannelKind, str(element.tag))
        self._scope, self._findings = scope, reading.findings

    def read(self) -> Channel | None:
        """Return the channel; None when it has problems."""
        element, findings, kind = self._element, self._findings, self._kind
        before = len(findings.problems)
        attributes(element, _ATTRIBUTES, findings)
        list(
            children(element, frozenset({"deliver", f"{kind}-info", f"{kind}-contents"}), findings)
        )
        if kind in _NOT_SENT:
            findings.warn(element, f"no {kind} is sent; what would be sent is logged")
        info = self._info()
        channel = Channel(
            kind=kind,
            name=element.get("name", kind),
            deliver=self._deliver(),
            throttle=self._throttle(),
            test=boolean(element, "test", findings),
            target=", ".join(info[name] for name in _TARGETS if info.get(name)),
            subject=info.get("subject", ""),
            content_type=info.get("content-type", "text/plain; charset=utf-8"),
            message=self._message(),
            unresolved=element.get("unresolved-text", ""),
        )
        self._check(channel)
        return channel if len(findings.problems) == before else None

    def _info(self) -> dict[str, str]:
        block = only_child(self._element, f"{self._kind}-info", self._findings)
        if block is None:
            return {}
        parts = list(children(block, _INFO[self._kind], self._findings))
        return {str(part.tag): self._template(part) for part in parts}

    def _message(self) -> str:
        block = only_child(self._element, f"{self._kind}-contents", self._findings)
        parts: Iterable[etree._Element] = ()
        if block is not None:
            parts = list(children(block, _CONTENTS, self._findings))
        for part in parts:
            attributes(part, frozenset({"name", "enabled"}), self._findings)
            if part.tag == "image-content":
                self._findings.warn(part, "images are left out")
        texts = [self._template(part) for part in parts if part.tag != "image-content"]
        return "\n".join(texts)

    def _template(self, element: etree._Element) -> str:
        found = text_of(element)
        for match in NAME.finditer(found):
            name = match[1] or match[2]
            if name and name not in _names(self._scope):
                self._findings.warn(
                    element, f"${name} is neither a field nor a function; it has no value"
                )
        return found

    def _deliver(self) -> str | None:
        element = only_child(self._element, "deliver", self._findings)
        if element is None or not text_of(element):
            return None
        try:
            self._scope.compiled(text_of(element))
            remarked(element, self._scope, self._findings)
            return str(parse(text_of(element)))
        except FunctionError as error:
            self._findings.refuse(element, str(error))
            return None

    def _throttle(self) -> int:
        found = self._element.get("throttle-interval", "0")
        match = _INTERVAL.fullmatch(found.strip().lower())
        seconds = _UNITS.get(match[2] or "second") if match else None
        if match is None or seconds is None:
            reason = f"throttle-interval {found!r} is not a length of time, such as 30 seconds"
            self._findings.refuse(self._element, reason)
            return 0
        return int(match[1]) * seconds * 1_000

    def _check(self, channel: Channel) -> None:
        if channel.kind != "http":
            return
        if not is_web(NAME.sub("x", channel.target)):
            reason = f"the url {channel.target!r} is none that starts with http:// or https://"
            self._findings.refuse(self._element, reason)
        if not _CONTENT_TYPE.fullmatch(channel.content_type):
            reason = f"content-type {channel.content_type!r} is none, such as application/json"
            self._findings.refuse(self._element, reason)


def is_web(url: str) -> bool:
    """Say whether something can be posted to this address."""
    if not url.isascii() or any(letter <= " " or letter == "\x7f" for letter in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


WINDOW = WindowType(
    "notification",
    _read,
    "messages",
    elements=frozenset(
        {"schema", "schema-string", "smtp", "function-context", "delivery-channels"}
    ),
    no_retention="a notification keeps no rows; give a window before it the retention",
    own_rows=True,
)
