"""Filter windows with a plain expression."""

from typing import Literal

from espha.model.expressions import ExpressionError, compile_expression
from espha.model.kinds.base import Kind, Reading
from espha.model.project import Window
from espha.model.xml import only_child, text_of


class FilterWindow(Window):
    """Lets an event through when its expression is neither zero nor null."""

    kind: Literal["filter"] = "filter"
    expression: str


def _read(reading: Reading) -> FilterWindow | None:
    element = only_child(reading.element, "expression", reading.findings)
    if element is None:
        reading.refuse("needs an <expression>")
        return None
    try:
        expression = compile_expression(text_of(element), reading.feed)
        if expression.kind == "string":
            raise ExpressionError("a filter needs a condition, the expression gives a string")
    except ExpressionError as error:
        reading.findings.refuse(element, str(error))
        return None
    return FilterWindow(**reading.common, fields=reading.feed, expression=expression.text)


KIND = Kind("filter", _read, elements=frozenset({"expression"}))
