"""Filter windows."""

from typing import Literal

from espha.languages.eel import Initialize, Language, read_expression, read_language
from espha.model.project import Window
from espha.model.xml import only_child
from espha.windows.shared.script_spec import CODE_ATTRIBUTES, Code, read_own_code
from espha.windows.shared.spec import Reading, WindowType

_PLUGINS = frozenset({"plugin", "filter-plug"})


class FilterWindow(Window):
    """Lets an event through when its expression is neither zero nor null.

    Attributes:
        expression: in canonical spelling.
        initialize: variables and functions that the expression uses.
        code: a script that decides in place of the expression.
    """

    type: Literal["filter"] = "filter"
    expression: str
    initialize: Initialize | None = None
    code: Code | None = None


def _read(reading: Reading) -> FilterWindow | None:
    before = len(reading.findings.problems)
    for plugin in reading.element.iterchildren(*_PLUGINS):
        called = ":".join(filter(None, (plugin.get("name"), plugin.get("function")))) or "no name"
        reason = f"C++ plug-ins are not run ({called}); write the condition as an <expression>"
        reading.findings.refuse(plugin, reason)
    if reading.element.find("code") is not None:
        return _read_script(reading, before)
    language = read_language(reading.element, reading.feed, reading.findings)
    expression = None if language is None else _condition(reading, language)
    if language is None or expression is None or len(reading.findings.problems) > before:
        return None
    return FilterWindow(
        **reading.common,
        fields=reading.feed,
        expression=expression,
        initialize=language.initialize,
    )


def _read_script(reading: Reading, before: int) -> FilterWindow | None:
    for element in reading.element.iterchildren("expression", "expr-initialize"):
        reading.findings.refuse(element, "the <code> decides; remove one of the two")
    code = read_own_code(reading, "filter")
    if code is None or len(reading.findings.problems) > before:
        return None
    return FilterWindow(**reading.common, fields=reading.feed, expression="", code=code)


def _condition(reading: Reading, language: Language) -> str | None:
    element = only_child(reading.element, "expression", reading.findings)
    if element is None:
        if not any(True for _ in reading.element.iterchildren(*_PLUGINS)):
            reading.refuse("needs an <expression>")
        return None
    expression = read_expression(element, language, reading.findings)
    if expression is None:
        return None
    if expression.type not in {"int", "double", "null"}:
        reason = f"a filter needs a condition, the expression gives a {expression.type}"
        reading.findings.refuse(element, reason)
        return None
    return expression.text


WINDOW = WindowType(
    "filter",
    _read,
    "choice",
    elements=frozenset({"expression", "expr-initialize", "code", "code-file", "use"}),
    refused=_PLUGINS,
    attributes=CODE_ATTRIBUTES,
)
