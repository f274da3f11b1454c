"""Functional windows: functions over the fields of an event, and loops over what is in a field."""

from collections.abc import Callable
from typing import Final, Literal, cast

from lxml import etree

from espha.languages.functional.compile import Names
from espha.languages.functional.documents import compiled_xpath, json_path
from espha.languages.functional.errors import FunctionError
from espha.languages.functional.from_xml import Context, constant_text, name_of, read_context
from espha.languages.functional.parse import parse
from espha.languages.functional.regexes import checked
from espha.languages.functional.scope import Scope
from espha.model.project import Field, Part, Window
from espha.model.schema import read_schema
from espha.model.xml import attributes, boolean, children, only_child, text_of
from espha.windows.shared.spec import Reading, WindowType

OPCODE: Final = "__opcode"
"""A function of this name gives the opcode of the event."""

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
        context: what is computed of the found thing.
    """

    kind: LoopKind
    names: tuple[str, ...]
    use: str
    find: str
    context: Context


class FunctionalWindow(Window):
    """Computes fields with functions.

    Attributes:
        inputs: names of the windows that feed it.
        context: functions that see the event.
        loops: if there are any, events come from them only.
        generate: condition for an event; None: all.
        inserts_only: every event leaves as an insert; nothing leaves for what is deleted.
    """

    type: Literal["functional"] = "functional"
    inputs: tuple[str, ...]
    context: Context = Context()
    loops: tuple[EventLoop, ...] = ()
    generate: str | None = None
    inserts_only: bool = False


def _read(reading: Reading) -> FunctionalWindow | None:
    findings, element = reading.findings, reading.element
    before = len(findings.problems)
    fields = read_schema(element, findings)
    scope = Scope([field.name for field in reading.feed])
    context = read_context(element.findall("function-context"), scope, findings)
    loops, scopes = _read_loops(reading, scope)
    generate = _read_generate(reading, scopes or [scope])
    inserts_only = boolean(element, "produces-only-inserts", findings)
    if fields is not None:
        _check_fields(reading, fields, [each.names for each in scopes or [scope]])
    if fields is None or len(findings.problems) > before:
        return None
    return FunctionalWindow(
        **reading.common,
        fields=fields,
        inputs=tuple(feed.path.partition("/")[2] for feed in reading.feeds),
        context=context,
        loops=tuple(loops),
        generate=generate,
        inserts_only=inserts_only,
    )


def _read_loops(reading: Reading, outer: Scope) -> tuple[list[EventLoop], list[Scope]]:
    loops: list[EventLoop] = []
    scopes: list[Scope] = []
    for block in reading.element.findall("event-loops"):
        for element in children(block, frozenset(_LOOPS), reading.findings):
            scope = outer.inner()
            scopes.append(scope)
            loop = _read_loop(element, outer, scope, reading)
            if loop is not None:
                loops.append(loop)
    return loops, scopes


def _read_loop(
    element: etree._Element, outer: Scope, scope: Scope, reading: Reading
) -> EventLoop | None:
    findings = reading.findings
    use, find, check = _LOOPS[element.tag]
    attributes(element, frozenset({"name", "data"}), findings)
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
    return EventLoop(kind=kind, names=known, use=used, find=found, context=context)


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
        return str(parse(text_of(element)))
    except FunctionError as error:
        reading.findings.refuse(element, str(error))
        return ""


def _read_generate(reading: Reading, scopes: list[Scope]) -> str | None:
    element = only_child(reading.element, "generate", reading.findings)
    found = [_function(element, scope, reading) for scope in scopes]
    return found[0]


def _check_fields(reading: Reading, fields: tuple[Field, ...], scopes: list[Names]) -> None:
    passed_on = {field.name for field in reading.feed}
    for field in fields:
        if field.name in passed_on or all(field.name in names.results for names in scopes):
            continue
        if field.key:
            reading.refuse(
                f"key field {field.name!r} is not in the input, and not every event gets it from "
                "a function"
            )
        elif not any(field.name in names.results for names in scopes):
            reading.findings.warn(
                reading.element, f"field {field.name!r} stays null: nothing gives it a value"
            )


WINDOW = WindowType(
    "functional",
    _read,
    "computation",
    elements=frozenset({"schema", "schema-string", "function-context", "event-loops", "generate"}),
    inputs=(1, None),
    by_name=True,
)
