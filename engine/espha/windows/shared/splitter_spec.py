"""Splitters: `<splitter-expr>` on a window says to which slot an event goes."""

from lxml import etree

from espha.languages.eel import read_expression, read_language
from espha.model.problems import Findings
from espha.model.project import Splitter, Window
from espha.model.xml import attributes, children, only_child


def read_splitter(element: etree._Element, window: Window, findings: Findings) -> Splitter | None:
    """Read the splitter of a window; None when there is none, or it has problems.

    Args:
        element: the window's XML.
        window: the window; the expression sees its fields.
        findings: where problems go.
    """
    for plugin in element.findall("splitter-plug"):
        findings.refuse(plugin, "C++ plug-ins are not run; write the slot as a <splitter-expr>")
    block = only_child(element, "splitter-expr", findings)
    if block is None:
        return None
    attributes(block, frozenset(), findings)
    list(children(block, frozenset({"expr-initialize", "expression"}), findings))
    text = only_child(block, "expression", findings)
    if text is None:
        findings.refuse(block, "needs an <expression> that gives the number of the slot")
        return None
    language = read_language(block, window.fields, findings)
    expression = None if language is None else read_expression(text, language, findings)
    if language is None or expression is None:
        return None
    if expression.type not in {"int", "double", "null"}:
        findings.refuse(text, f"a slot is a number, the expression gives a {expression.type}")
        return None
    initialize = "" if language.initialize is None else language.initialize.model_dump_json()
    return Splitter(expression=expression.text, initialize=initialize)
