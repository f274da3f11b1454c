"""Compute windows: one expression for each field that is no key."""

from typing import Literal

from lxml import etree

from espha.languages.eel import (
    ExpressionError,
    Initialize,
    Language,
    converter,
    read_expression,
    read_language,
)
from espha.model.project import Field, Window
from espha.model.schema import check_passed_on, read_schema
from espha.model.xml import children, only_child
from espha.windows.shared.script_spec import CODE_ATTRIBUTES, Code, read_own_code
from espha.windows.shared.spec import Reading, WindowType

_PLUGINS = frozenset({"context-plugin", "field-plug", "plugin", "ds2-tableserver", "mas-map"})


class ComputeWindow(Window):
    """Computes each field that is no key.

    Attributes:
        expressions: one for each of these fields, in order, in canonical spelling.
        initialize: variables and functions that the expressions use.
        code: a script that computes the fields in place of expressions.
    """

    type: Literal["compute"] = "compute"
    expressions: tuple[str, ...]
    initialize: Initialize | None = None
    code: Code | None = None


def _read(reading: Reading) -> ComputeWindow | None:
    findings, before = reading.findings, len(reading.findings.problems)
    _refuse_plugins(reading.element, reading)
    fields = read_schema(reading.element, findings)
    if reading.element.find("code") is not None:
        return _read_script(reading, fields, before)
    language = read_language(reading.element, reading.feed, findings)
    if fields is None or language is None or not _good_keys(reading, fields):
        return None
    expressions = _expressions(reading, fields, language)
    if expressions is None or len(findings.problems) > before:
        return None
    return ComputeWindow(
        **reading.common, fields=fields, expressions=expressions, initialize=language.initialize
    )


def _read_script(
    reading: Reading, fields: tuple[Field, ...] | None, before: int
) -> ComputeWindow | None:
    for element in reading.element.iterchildren("output", "expr-initialize"):
        reading.findings.refuse(element, "the <code> computes; remove one of the two")
    code = read_own_code(reading, "create")
    if fields is None or not _good_keys(reading, fields):
        return None
    if code is None or len(reading.findings.problems) > before:
        return None
    return ComputeWindow(**reading.common, fields=fields, expressions=(), code=code)


def _refuse_plugins(parent: etree._Element, reading: Reading) -> None:
    for element in parent.iterchildren(*_PLUGINS):
        names = (element.get("name"), element.get("function"))
        called = ":".join(name for name in names if name) or "no name"
        reason = f"C++, DS2 and MAS code is not run ({called}); write the field as a <field-expr>"
        reading.findings.refuse(element, reason)


def _good_keys(reading: Reading, fields: tuple[Field, ...]) -> bool:
    keys = [field for field in fields if field.key]
    return check_passed_on(reading.element, keys, reading.feed, reading.findings)


def _expressions(
    reading: Reading, fields: tuple[Field, ...], language: Language
) -> tuple[str, ...] | None:
    findings = reading.findings
    output = only_child(reading.element, "output", findings)
    if output is None:
        reading.refuse("needs an <output> with a <field-expr> for each field that is not a key")
        return None
    _refuse_plugins(output, reading)
    computed = [field for field in fields if not field.key]
    known = list(children(output, frozenset({"field-expr"}) | _PLUGINS, findings))
    texts = [element for element in known if element.tag == "field-expr"]
    if len(texts) != len(computed) and len(texts) == len(known):
        names = ", ".join(field.name for field in computed)
        reason = f"has {len(texts)} <field-expr> for {len(computed)} fields ({names})"
        findings.refuse(output, reason)
    if len(texts) != len(computed):
        return None
    read = [_one(reading, language, *pair) for pair in zip(texts, computed, strict=True)]
    good = [text for text in read if text is not None]
    return tuple(good) if len(good) == len(read) else None


def _one(reading: Reading, language: Language, element: etree._Element, field: Field) -> str | None:
    what = f"field {field.name!r}: "
    expression = read_expression(element, language, reading.findings, what)
    if expression is None:
        return None
    try:
        converter(expression.type, field.type)
    except ExpressionError as error:
        reading.findings.refuse(element, f"{what}{error}")
        return None
    return expression.text


WINDOW = WindowType(
    "compute",
    _read,
    "computation",
    elements=frozenset(
        {"schema", "schema-string", "output", "expr-initialize", "code", "code-file", "use"}
    ),
    refused=_PLUGINS,
    attributes=CODE_ATTRIBUTES,
)
