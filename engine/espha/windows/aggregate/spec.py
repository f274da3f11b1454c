"""Aggregate windows: one row for each group of rows."""

from collections.abc import Sequence
from typing import Literal

from lxml import etree

from espha.languages.eel import ExpressionError, Initialize, Language, converter, read_language
from espha.languages.eel.from_xml import expression_text
from espha.model.project import Field, Window
from espha.model.schema import check_passed_on, read_schema
from espha.model.xml import children, only_child
from espha.windows.aggregate.functions import Call, Calls
from espha.windows.shared.spec import Reading, WindowType

_PLUGINS = frozenset({"field-plug"})


class AggregateWindow(Window):
    """Groups rows by the key of its own schema.

    Attributes:
        calls: what is aggregated.
        expressions: one for each field that is no key, in order, in canonical spelling, over the
            fields of the input and of `aggregated`.
        initialize: variables and functions that the expressions use.
    """

    type: Literal["aggregate"] = "aggregate"
    calls: tuple[Call, ...]
    expressions: tuple[str, ...]
    initialize: Initialize | None = None


def aggregated(feed: Sequence[Field], calls: Sequence[Call]) -> list[Field]:
    """Return the fields that expressions know: those of the input, then the calls as #0, #1, …."""
    return [*feed, *(Field(f"#{number}", call.type) for number, call in enumerate(calls))]


def _read(reading: Reading) -> AggregateWindow | None:
    findings, before = reading.findings, len(reading.findings.problems)
    fields = read_schema(reading.element, findings)
    language = read_language(reading.element, reading.feed, findings)
    if fields is None or language is None:
        return None
    keys = [field for field in fields if field.key]
    check_passed_on(reading.element, keys, reading.feed, findings)
    computed = [field for field in fields if not field.key]
    elements = _elements(reading, computed)
    if len(findings.problems) > before:
        return None
    calls = Calls(reading.feed, language.initialize)
    texts = [_take_apart(calls, *pair, reading) for pair in zip(elements, computed, strict=True)]
    if len(findings.problems) > before:
        return None
    whole = Language(aggregated(reading.feed, calls.found()), language.initialize)
    expressions = [
        _expression(whole, *each, reading) for each in zip(texts, elements, computed, strict=True)
    ]
    if len(findings.problems) > before:
        return None
    return AggregateWindow(
        **reading.common,
        fields=fields,
        calls=calls.found(),
        expressions=tuple(expressions),
        initialize=language.initialize,
    )


def _elements(reading: Reading, computed: Sequence[Field]) -> list[etree._Element]:
    findings = reading.findings
    output = only_child(reading.element, "output", findings)
    if output is None:
        if computed:
            reading.refuse("needs an <output> with a <field-expr> for each field that is not a key")
        return []
    parts = list(children(output, frozenset({"field-expr"}) | _PLUGINS, findings))
    texts = [element for element in parts if element.tag not in _PLUGINS]
    for element in parts:
        if element.tag in _PLUGINS:
            _refuse_plugin(element, reading)
    if len(texts) != len(computed) and len(texts) == len(parts):
        names = ", ".join(field.name for field in computed)
        reason = f"has {len(texts)} <field-expr> for {len(computed)} fields ({names})"
        findings.refuse(output, reason)
    return texts


def _refuse_plugin(element: etree._Element, reading: Reading) -> None:
    known = " ".join(element.get(name, "") for name in ("function", "additive"))
    reason = f"C++ code is not run ({known.strip() or 'no name'}); write <field-expr> with an ESP_a"
    reading.findings.refuse(element, f"{reason} function, such as ESP_aSum(field)")


def _take_apart(calls: Calls, element: etree._Element, field: Field, reading: Reading) -> str:
    try:
        return calls.take_apart(expression_text(element))
    except ExpressionError as error:
        reading.findings.refuse(element, f"field {field.name!r}: {error}")
        return ""


def _expression(
    language: Language, text: str, element: etree._Element, field: Field, reading: Reading
) -> str:
    try:
        expression = language.compile(text)
        converter(expression.type, field.type)
    except ExpressionError as error:
        reading.findings.refuse(element, f"field {field.name!r}: {error}")
        return ""
    return expression.text


WINDOW = WindowType(
    "aggregate",
    _read,
    "statistics",
    elements=frozenset({"schema", "schema-string", "output", "expr-initialize"}),
    no_retention="a group goes when its last row goes; give a window before it the retention",
    own_rows=True,
)
