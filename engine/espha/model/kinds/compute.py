"""Compute windows: one plain expression for each field that is no key."""

from typing import Literal

from lxml import etree

from espha.model.expressions import ExpressionError, compile_expression, converter
from espha.model.kinds.base import Kind, Reading
from espha.model.project import Field, Window
from espha.model.schema import check_keys, check_passed_on, read_schema
from espha.model.xml import children, only_child, text_of


class ComputeWindow(Window):
    """Computes each field that is no key; `expressions` has one for each of them, in order."""

    kind: Literal["compute"] = "compute"
    expressions: tuple[str, ...]


def _read(reading: Reading) -> ComputeWindow | None:
    findings, element = reading.findings, reading.element
    fields = read_schema(element, findings)
    output = only_child(element, "output", findings)
    if output is None:
        reading.refuse("needs an <output> with a <field-expr> for each field that is no key")
    if fields is None or output is None:
        return None
    keys = [field for field in fields if field.key]
    good = check_keys(element, fields, reading.feed, findings)
    if not good or not check_passed_on(element, keys, reading.feed, findings):
        return None
    computed = [field for field in fields if not field.key]
    texts = list(children(output, frozenset({"field-expr"}), findings))
    if len(texts) != len(computed):
        names = ", ".join(field.name for field in computed)
        reason = f"has {len(texts)} <field-expr> for {len(computed)} fields ({names})"
        findings.refuse(output, reason)
        return None
    expressions = [_read_one(reading, *pair) for pair in zip(texts, computed, strict=True)]
    if None in expressions:
        return None
    return ComputeWindow(
        **reading.common, fields=fields, expressions=tuple(text for text in expressions if text)
    )


def _read_one(reading: Reading, element: etree._Element, field: Field) -> str | None:
    try:
        expression = compile_expression(text_of(element), reading.feed)
        converter(expression.kind, field.type)
    except ExpressionError as error:
        reading.findings.refuse(element, f"field {field.name!r}: {error}")
        return None
    return expression.text


KIND = Kind("compute", _read, elements=frozenset({"schema", "schema-string", "output"}))
