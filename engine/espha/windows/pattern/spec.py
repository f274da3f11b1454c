"""Pattern windows: events that follow, or do not follow, one another."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from lxml import etree

from espha.languages.eel import (
    ExpressionError,
    Initialize,
    Language,
    converter,
    read_expression,
    read_language,
)
from espha.model.project import Field, Part, Window
from espha.model.schema import read_schema
from espha.model.xml import attributes, children, only_child, text_of
from espha.windows.pattern.bindings import EventError, Given, bound_fields, compile_events
from espha.windows.pattern.logic import LogicError, parse_logic
from espha.windows.shared.spec import Feed, Reading, WindowType

MAX_PATTERNS: Final = 1_000
_TICKS: Final = frozenset({"date", "stamp"})


class EventOfInterest(NamedTuple):
    """An event that a pattern looks for.

    Attributes:
        name: what the logic calls it.
        ports: the inputs that it comes from; several when slots of one window lead here.
        expression: its condition, in canonical spelling.
    """

    name: str
    ports: tuple[int, ...]
    expression: str


class PatternOutput(NamedTuple):
    """What is written to one field: a field of the event `node`, an expression on it, or null."""

    node: str
    field: str
    expression: str


class TimeField(NamedTuple):
    """The field that tells the time of what comes from an input."""

    port: int
    field: str


class Pattern(Part):
    """One pattern of a window.

    Attributes:
        index: fields that all sources have; events with different values do not meet.
        logic: in one spelling; `espha.windows.pattern.logic` reads it.
        outputs: one for each field that is no key, in order.
        times: data time; empty: the clock of the order record.
    """

    name: str
    index: tuple[str, ...]
    events: tuple[EventOfInterest, ...]
    logic: str
    outputs: tuple[PatternOutput, ...]
    times: tuple[TimeField, ...]


class PatternWindow(Window):
    """Finds patterns in the inserts of any number of windows; its key counts the matches."""

    type: Literal["pattern"] = "pattern"
    patterns: tuple[Pattern, ...]
    initialize: Initialize | None = None


def _read(reading: Reading) -> PatternWindow | None:
    findings, before = reading.findings, len(reading.findings.problems)
    fields = read_schema(reading.element, findings)
    language = read_language(reading.element, (), findings)
    if fields is not None and [field.type for field in fields if field.key] != ["int64"]:
        reading.refuse("needs one key, of type int64: the matches are numbered in it")
    block = only_child(reading.element, "patterns", findings)
    if block is None:
        reading.refuse("needs <patterns>")
    if fields is None or language is None or block is None:
        return None
    elements = list(children(block, frozenset({"pattern"}), findings))
    if not 1 <= len(elements) <= MAX_PATTERNS:
        findings.refuse(block, f"has {len(elements)} patterns; give 1 to {MAX_PATTERNS}")
    reader = _Reader(reading, [field for field in fields if not field.key], language.initialize)
    patterns = [reader.read(element) for element in elements]
    if len(findings.problems) > before:
        return None
    active = tuple([pattern for pattern in patterns if pattern is not None])
    return PatternWindow(
        **reading.common, fields=fields, patterns=active, initialize=language.initialize
    )


class _Reader:
    """Reads patterns; problems go to the findings."""

    def __init__(
        self, reading: Reading, computed: Sequence[Field], initialize: Initialize | None
    ) -> None:
        self._findings = reading.findings
        self._feeds = reading.feeds
        self._computed = computed
        self._initialize = initialize
        self._bound: tuple[Field, ...] = ()

    def read(self, element: etree._Element) -> Pattern | None:
        """Return a pattern; None when it is not active, or has problems."""
        findings = self._findings
        before = len(findings.problems)
        parts = self._parts(element)
        if len(findings.problems) > before:
            return None
        found = self._events(parts["events"])
        pattern: dict[str, Any] = {
            "index": self._index(element, found),
            "logic": self._logic(parts["logic"], found),
            "outputs": self._outputs(parts["output"], found),
            "times": self._times(parts.get("timefields"), found),
        }
        if len(findings.problems) > before or not _is_active(element):
            return None
        return Pattern(name=element.get("name", ""), events=tuple(found.values()), **pattern)

    def _parts(self, element: etree._Element) -> dict[str, etree._Element]:
        findings = self._findings
        attributes(element, frozenset({"name", "index", "active", "is-active"}), findings)
        needed = frozenset({"events", "logic", "output"})
        parts: dict[str, etree._Element] = {}
        for child in children(element, needed | {"timefields"}, findings):
            if str(child.tag) in parts:
                findings.refuse(child, "occurs twice in <pattern>")
            parts[str(child.tag)] = child
        for tag in sorted(needed - set(parts)):
            findings.refuse(element, f"needs <{tag}>")
        return parts

    def _events(self, block: etree._Element) -> dict[str, EventOfInterest]:
        elements: dict[str, etree._Element] = {}
        ports: dict[str, tuple[int, ...]] = {}
        for element in children(block, frozenset({"event"}), self._findings):
            attributes(element, frozenset({"name", "source"}), self._findings)
            name = element.get("name", "")
            if not name.isidentifier() or not name.isascii():
                self._findings.refuse(element, f"the name {name!r}: use letters, digits and _")
            elif name in elements:
                self._findings.refuse(element, f"event {name!r} is defined twice")
            else:
                found = self._source(element)
                if found:
                    elements[name], ports[name] = element, found
        return self._compiled(elements, ports)

    def _compiled(
        self, elements: dict[str, etree._Element], ports: dict[str, tuple[int, ...]]
    ) -> dict[str, EventOfInterest]:
        given = [
            Given(name, self._feeds[ports[name][0]].fields, text_of(element))
            for name, element in elements.items()
        ]
        try:
            compiled, self._bound = compile_events(given, self._initialize)
        except EventError as error:
            self._findings.refuse(elements[error.name], str(error))
            return {}
        return {
            name: EventOfInterest(name, ports[name], interest.condition.text)
            for name, interest in compiled.items()
        }

    def _source(self, element: etree._Element) -> tuple[int, ...]:
        name = element.get("source", "")
        ports = [port for port, feed in enumerate(self._feeds) if _name(feed) == name]
        if not ports:
            known = ", ".join(sorted({_name(feed) for feed in self._feeds}))
            reason = f"no edge leads here from window {name!r}, only from: {known}"
            self._findings.refuse(element, reason)
        return tuple(ports)

    def _ports(self, events: dict[str, EventOfInterest]) -> list[int]:
        return sorted({port for event in events.values() for port in event.ports})

    def _index(
        self, element: etree._Element, events: dict[str, EventOfInterest]
    ) -> tuple[str, ...]:
        names = [name.strip() for name in element.get("index", "").split(",") if name.strip()]
        for name in names:
            for port in self._ports(events):
                feed = self._feeds[port]
                if name not in [field.name for field in feed.fields]:
                    reason = f"index field {name!r} is not in {_name(feed)}"
                    self._findings.refuse(element, reason)
        return tuple(names)

    def _times(
        self, block: etree._Element | None, events: dict[str, EventOfInterest]
    ) -> tuple[TimeField, ...]:
        result: dict[int, TimeField] = {}
        if block is None:
            return ()
        for element in children(block, frozenset({"timefield"}), self._findings):
            attributes(element, frozenset({"field", "source"}), self._findings)
            name = element.get("field", "")
            for port in self._source(element):
                types = {field.name: field.type for field in self._feeds[port].fields}
                if types.get(name) not in _TICKS:
                    found = types.get(name, "not in that window")
                    reason = f"field {name!r} is {found}; a time must be a date or a stamp"
                    self._findings.refuse(element, reason)
                elif port in result:
                    self._findings.refuse(element, "this window has a time field already")
                else:
                    result[port] = TimeField(port, name)
        used = self._ports(events)
        return tuple([result[port] for port in sorted(result) if port in used])

    def _logic(self, element: etree._Element, events: dict[str, EventOfInterest]) -> str:
        attributes(element, frozenset(), self._findings)
        if not events:
            return ""
        try:
            logic = parse_logic(text_of(element), list(events))
        except LogicError as error:
            self._findings.refuse(element, str(error))
            return ""
        for name in events.keys() - set(logic.events()):
            self._findings.warn(element, f"event {name!r} is not in the logic")
        return str(logic)

    def _outputs(
        self, block: etree._Element, events: dict[str, EventOfInterest]
    ) -> tuple[PatternOutput, ...]:
        known = frozenset({"field-selection", "field-expr"})
        elements = list(children(block, known, self._findings))
        if len(elements) != len(self._computed):
            names = ", ".join(field.name for field in self._computed)
            reason = f"has {len(elements)} outputs for {len(self._computed)} fields ({names})"
            self._findings.refuse(block, reason)
            return ()
        if not events:
            return ()
        pairs = zip(elements, self._computed, strict=True)
        return tuple([self._output(element, field, events) for element, field in pairs])

    def _output(
        self, element: etree._Element, field: Field, events: dict[str, EventOfInterest]
    ) -> PatternOutput:
        findings, name = self._findings, element.get("name", "")
        attributes(element, frozenset({"name", "node"}), findings)
        node = element.get("node", "")
        if node not in events:
            findings.refuse(element, f"node {node!r} is not one of: {', '.join(events)}")
            return PatternOutput("", "", "")
        fields = self._feeds[events[node].ports[0]].fields
        what = f"field {field.name!r}: "
        if element.tag == "field-selection":
            if name not in [each.name for each in fields]:
                findings.refuse(element, f"{what}{name!r} is not a field of the event {node}")
                return PatternOutput("", "", "")
            return PatternOutput(node, self._fitting(element, fields, name, field), "")
        if not text_of(element):
            return PatternOutput(node, "", "")
        seen = (*fields, *bound_fields(fields, self._bound))
        expression = read_expression(element, Language(seen, self._initialize), findings, what)
        if expression is not None:
            self._check(element, expression.type, field)
        return PatternOutput(node, "", "" if expression is None else expression.text)

    def _fitting(
        self, element: etree._Element, fields: Sequence[Field], name: str, field: Field
    ) -> str:
        found = next(each for each in fields if each.name == name)
        if found.type != field.type:
            self._check(element, Language(fields).compile(f"`{name}`").type, field)
        return name

    def _check(self, element: etree._Element, kind: str, field: Field) -> None:
        try:
            converter(kind, field.type)
        except ExpressionError as error:
            self._findings.refuse(element, f"field {field.name!r}: {error}")


def _name(feed: Feed) -> str:
    return feed.path.split("/", maxsplit=1)[1]


def _is_active(element: etree._Element) -> bool:
    word = element.get("active", element.get("is-active", "true"))
    return word.strip().lower() not in {"false", "0"}


WINDOW = WindowType(
    "pattern",
    _read,
    "patterns",
    elements=frozenset({"schema", "schema-string", "patterns", "expr-initialize"}),
    inputs=(1, None),
)
