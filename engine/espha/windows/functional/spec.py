"""Functional windows: functions over the fields of an event, and loops over what is in a field."""

from collections.abc import Callable
from typing import Final, Literal, cast

from lxml import etree

from espha.languages.functional.documents import compiled_xpath, json_path
from espha.languages.functional.errors import FunctionError
from espha.languages.functional.from_xml import (
    Context,
    constant_text,
    name_of,
    read_context,
    remarked,
)
from espha.languages.functional.parse import parse
from espha.languages.functional.regexes import checked
from espha.languages.functional.scope import Scope
from espha.model.problems import Findings
from espha.model.project import Field, Part, Window
from espha.model.schema import read_schema
from espha.model.xml import attributes, boolean, children, only_child, text_of
from espha.windows.shared.spec import Reading, WindowType

OPCODE: Final = "__opcode"
"""A function of this name gives the opcode of the event."""

_GROUP: Final = "regex-group"
_NEVER: Final = frozenset({"0", "false", "false()"})
"""A `<generate>` that lets no event through, so that all of them come from the loops."""

LoopKind = Literal["xml", "json", "regex"]

_LOOPS: Final[dict[str, tuple[str, str, Callable[[str], object]]]] = {
    "event-loop-xml": ("use-xml", "xpath", compiled_xpath),
    "event-loop-json": ("use-json", "json", json_path),
    "event-loop-regex": ("use-text", "regex", checked),
}
"""Tag of a loop: what it looks into, what it looks for, and the check of that."""


class EventLoop(Part):
    """Makes one event of each thing that is found.

    Attributes:
        kind: what is looked into.
        names: what the found thing is called in `context`.
        use: function that gives the document or text.
        find: XPath, path into JSON, or regular expression.
        group: which group of a match counts; None: the first, or all of it without groups.
        context: what is computed of the found thing.
    """

    kind: LoopKind
    names: tuple[str, ...]
    use: str
    find: str
    group: int | None = None
    context: Context


class FunctionalWindow(Window):
    """Computes fields with functions.

    Attributes:
        inputs: names of the windows that feed it.
        context: functions that see the event.
        loops: each makes one event of each thing that it finds, after the event of `context`.
        generate: condition for the event of `context`; None: there always is one.
        opcode: function that gives the opcode of all events; None: that of the event.
        inserts_only: every event leaves as an insert; nothing leaves for what is deleted.
    """

    type: Literal["functional"] = "functional"
    inputs: tuple[str, ...]
    context: Context = Context()
    loops: tuple[EventLoop, ...] = ()
    generate: str | None = None
    opcode: str | None = None
    inserts_only: bool = False


def _read(reading: Reading) -> FunctionalWindow | None:
    findings, element = reading.findings, reading.element
    before = len(findings.problems)
    fields = read_schema(element, findings)
    scope = Scope([field.name for field in reading.feed])
    context = read_context(element.findall("function-context"), scope, findings)
    loops, makers = _read_loops(reading, scope)
    generate = _function(only_child(element, "generate", findings), scope, reading)
    opcode = _function(only_child(element, "opcode", findings), scope, reading)
    inserts_only = boolean(element, "produces-only-inserts", findings)
    if fields is not None:
        if generate not in _NEVER:
            makers.append({step.name for step in context.steps if step.kind == "function"})
        _check_fields(reading, fields, makers)
    if fields is None or len(findings.problems) > before:
        return None
    return FunctionalWindow(
        **reading.common,
        fields=fields,
        inputs=tuple(feed.path.partition("/")[2] for feed in reading.feeds),
        context=context,
        loops=tuple(loops),
        generate=generate,
        opcode=opcode,
        inserts_only=inserts_only,
    )


def _read_loops(reading: Reading, outer: Scope) -> tuple[list[EventLoop], list[set[str]]]:
    """Return the loops, and the names of the functions that each of them has."""
    loops: list[EventLoop] = []
    makers: list[set[str]] = []
    for block in reading.element.findall("event-loops"):
        for element in children(block, frozenset(_LOOPS), reading.findings):
            loop = _read_loop(element, outer, outer.inner(), reading)
            if loop is not None:
                loops.append(loop)
                steps = loop.context.steps
                makers.append({step.name for step in steps if step.kind == "function"})
    return loops, makers


def _read_loop(
    element: etree._Element, outer: Scope, scope: Scope, reading: Reading
) -> EventLoop | None:
    findings = reading.findings
    use, find, check = _LOOPS[element.tag]
    attributes(element, frozenset({"name", "data", _GROUP}), findings)
    list(children(element, frozenset({use, find, "function-context"}), findings))
    names = [name_of(element, findings), element.get("data")]
    known = tuple(dict.fromkeys(name for name in names if name))
    scope.declare_all(known)
    used = _function(only_child(element, use, findings), outer, reading)
    found = _find(element, find, check, scope, reading)
    context = read_context(element.findall("function-context"), scope, findings)
    if used is None:
        findings.refuse(element, f"needs a <{use}> with the field to look into, such as $text")
        return None
    if found is None:
        return None
    kind = cast(LoopKind, element.tag.removeprefix("event-loop-"))
    group = None if kind != "regex" else _group(element, find, found, findings)
    return EventLoop(kind=kind, names=known, use=used, find=found, group=group, context=context)


def _group(element: etree._Element, tag: str, pattern: str, findings: Findings) -> int | None:
    """Read which group of a match counts, an attribute of the loop or of its expression."""
    child = element.find(tag)
    places = [element] if child is None else [element, child]
    text = next((found for each in places if (found := each.get(_GROUP)) is not None), None)
    if text is None:
        return None
    if not text.isdecimal() or int(text) > checked(pattern).groups:
        findings.refuse(element, f"{_GROUP} {text!r} is not a group of {pattern[:60]!r}")
        return None
    return int(text)


def _find(
    element: etree._Element,
    tag: str,
    check: Callable[[str], object],
    scope: Scope,
    reading: Reading,
) -> str | None:
    """Return what a loop looks for; for JSON it can be left out, which is the whole document."""
    child = only_child(element, tag, reading.findings)
    if child is None and tag != "json":
        reading.findings.refuse(element, f"needs a <{tag}> that says what to look for")
        return None
    found = "" if child is None else constant_text(child, scope)
    try:
        check(found)
    except FunctionError as error:
        reading.findings.refuse(element if child is None else child, str(error))
        return None
    return found


def _function(element: etree._Element | None, scope: Scope, reading: Reading) -> str | None:
    if element is None:
        return None
    try:
        scope.compiled(text_of(element))
        remarked(element, scope, reading.findings)
        return str(parse(text_of(element)))
    except FunctionError as error:
        reading.findings.refuse(element, str(error))
        return ""


def _check_fields(reading: Reading, fields: tuple[Field, ...], makers: list[set[str]]) -> None:
    """Check that fields have a source: the input, or a function in what makes events."""
    passed_on = {field.name for field in reading.feed}
    for field in fields if reading.feeds else ():
        if field.name in passed_on or any(field.name in names for names in makers):
            continue
        if field.key:
            reading.refuse(
                f"key field {field.name!r} is not in the input, and no function gives it a value"
            )
        else:
            reading.findings.warn(
                reading.element, f"field {field.name!r} stays null: nothing gives it a value"
            )


WINDOW = WindowType(
    "functional",
    _read,
    "computation",
    elements=frozenset(
        {"schema", "schema-string", "function-context", "event-loops", "generate", "opcode"}
    ),
    inputs=(1, None),
    by_name=True,
)
