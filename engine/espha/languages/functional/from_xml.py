"""`<function-context>` to the steps that it means."""

import re
from collections.abc import Iterable
from typing import Final, cast

from lxml import etree

from espha.languages.functional.compile import FUNCTIONS
from espha.languages.functional.errors import FunctionError
from espha.languages.functional.parse import Literal, parse
from espha.languages.functional.scope import Scope, Step, StepKind, used_names
from espha.model.problems import Findings
from espha.model.project import Part
from espha.model.xml import attributes, children, text_of

_MARKS = re.compile(r"[$#()'\"\\]")
"""A text with one of these was meant to be a function."""

_BLOCKS: Final = frozenset({"expressions", "properties", "functions"})
_PROPERTIES: Final = {
    "property-map": frozenset({"name", "outer", "inner"}),
    "property-xml": frozenset({"name"}),
    "property-json": frozenset({"name"}),
    "property-string": frozenset({"name"}),
    "property-list": frozenset({"name", "delimiter"}),
    "property-set": frozenset({"name", "delimiter"}),
}

Found = tuple[etree._Element, Step]


class Context(Part):
    """What a `<function-context>` says.

    Attributes:
        expressions: names of constant texts, and the texts.
        steps: functions and properties in the order in which they run.
    """

    expressions: tuple[tuple[str, str], ...] = ()
    steps: tuple[Step, ...] = ()

    def into(self, scope: Scope) -> None:
        """Add everything to a scope."""
        for name, constant in self.expressions:
            scope.expression(name, constant)
        for step in self.steps:
            scope.add(step)


def read_context(elements: Iterable[etree._Element], scope: Scope, findings: Findings) -> Context:
    """Read the contexts of one window or loop, and add what they say to `scope`."""
    expressions: list[tuple[str, str]] = []
    properties: list[Found] = []
    functions: list[Found] = []
    for context in elements:
        for block in children(context, _BLOCKS, findings):
            if block.tag == "expressions":
                expressions += _expressions(block, scope, findings)
            elif block.tag == "properties":
                properties += _properties(block, findings)
            else:
                functions += _functions(block, findings)
    steps = _in_order(properties, functions, scope, findings)
    return Context(expressions=tuple(expressions), steps=tuple(steps))


def name_of(element: etree._Element, findings: Findings) -> str | None:
    """Return the name that other functions can use; None when it cannot be used."""
    name = element.get("name", "").strip()
    if not name:
        findings.refuse(element, "needs a name")
    return name or None


def _expressions(block: etree._Element, scope: Scope, findings: Findings) -> list[tuple[str, str]]:
    result: list[tuple[str, str]] = []
    for element in children(block, frozenset({"expression"}), findings):
        attributes(element, frozenset({"name"}), findings)
        name = name_of(element, findings)
        if name is not None:
            scope.expression(name, text_of(element))
            result.append((name, text_of(element)))
    return result


def _properties(block: etree._Element, findings: Findings) -> list[Found]:
    result: list[Found] = []
    for element in children(block, frozenset(_PROPERTIES), findings):
        attributes(element, _PROPERTIES[element.tag], findings)
        kind = cast(StepKind, element.tag.removeprefix("property-"))
        outer = element.get("outer", element.get("delimiter", ","))
        step = _step(element, kind, outer, element.get("inner", "="), findings)
        if step is not None:
            result.append((element, step))
    return result


def _functions(block: etree._Element, findings: Findings) -> list[Found]:
    result: list[Found] = []
    for element in children(block, frozenset({"function"}), findings):
        attributes(element, frozenset({"name"}), findings)
        step = _step(element, "function", ",", "=", findings)
        if step is not None:
            result.append((element, step))
    return result


def _step(
    element: etree._Element, kind: StepKind, outer: str, inner: str, findings: Findings
) -> Step | None:
    name = name_of(element, findings)
    text = text_of(element)
    try:
        canonical = _canonical(text)
    except FunctionError as error:
        findings.refuse(element, str(error))
        return None
    if kind == "function" and text in FUNCTIONS:
        findings.warn(element, f"{text!r} is a text here; the function is called by {text}()")
    return None if name is None else Step(kind, name, canonical, outer, inner)


def _canonical(text: str) -> str:
    """Return the function of a step, or a plain text such as `GOOG,IBM` as one; empty is null."""
    if not text:
        return "null"
    try:
        return str(parse(text))
    except FunctionError:
        if _MARKS.search(text):
            raise
        return str(Literal(text))


def _in_order(
    properties: list[Found], functions: list[Found], scope: Scope, findings: Findings
) -> list[Step]:
    """Put each property before the functions, or right behind the one that it needs."""
    steps: list[Step] = []
    waiting = list(properties)

    def add(element: etree._Element, step: Step) -> None:
        try:
            scope.add(step)
            steps.append(step)
        except FunctionError as error:
            findings.refuse(element, str(error))
        remarked(element, scope, findings)

    def add_ready(coming: set[str]) -> None:
        progress = True
        while progress:
            progress = False
            for found in list(waiting):
                others = {step.name for _, step in waiting if step is not found[1]}
                if _is_ready(found[1], coming | others, scope):
                    waiting.remove(found)
                    add(*found)
                    progress = True

    for place, (element, step) in enumerate(functions):
        add_ready({later.name for _, later in functions[place:]})
        add(element, step)
    add_ready(set())
    for found in waiting:  # they wait for each other: adding them says what is missing
        add(*found)
    return steps


def _is_ready(step: Step, coming: set[str], scope: Scope) -> bool:
    names = scope.names
    known = {*names.fields, *names.results, *names.properties, *names.constants}
    return not (used_names(parse(step.text)) & coming) - known


def remarked(element: etree._Element, scope: Scope, findings: Findings) -> None:
    """Pass on, as warnings, what was noticed when functions of `element` were compiled."""
    for remark in dict.fromkeys(scope.names.remarks):
        findings.warn(element, remark)
    scope.names.remarks.clear()


def constant_text(element: etree._Element, scope: Scope) -> str:
    """Return the text of an element; `#name` stands for an expression."""
    found = text_of(element)
    return scope.names.constants.get(found[1:], found) if found.startswith("#") else found
