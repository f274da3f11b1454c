"""Splitters: an expression or a script on a window says to which slot an event goes."""

from typing import Final

from lxml import etree

from espha.languages.eel import read_expression, read_language
from espha.model.problems import Findings
from espha.model.project import Splitter, Window
from espha.model.xml import attributes, children, only_child
from espha.windows.shared.library import LANGUAGES, Language, Library, defines
from espha.windows.shared.script_spec import CODE_ATTRIBUTES, Code, given_fields, read_code
from espha.windows.shared.spec import Feed, Reading

SCRIPTED: Final[dict[str, Language]] = {f"splitter-{language}": language for language in LANGUAGES}
"""Elements with a script, and its language."""

_FUNCTIONS: Final = ("splitter", "split", "slot", "create")
"""Names of the function, if the splitter does not say one."""


class ScriptSplitter(Splitter):
    """Says by a script to which slot an event goes."""

    code: Code


def read_splitter(
    element: etree._Element, window: Window, findings: Findings, library: Library
) -> Splitter | None:
    """Read the splitter of a window; None when there is none, or it has problems.

    Args:
        element: the window's XML.
        window: the window; the splitter sees its fields.
        findings: where problems go.
        library: what the scripts of the project share.
    """
    for tag, script_language in SCRIPTED.items():
        scripted = only_child(element, tag, findings)
        if scripted is not None:
            feed = Feed(window.path, "data", None, window.fields)
            return _script(Reading(scripted, {}, (feed,), findings, library), script_language)
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


def _script(reading: Reading, language: Language) -> ScriptSplitter | None:
    element, findings = reading.element, reading.findings
    attributes(element, CODE_ATTRIBUTES, findings)
    list(children(element, frozenset({"code", "use"}), findings))
    text = "".join(str(part) for part in element.itertext("code"))
    there = (name for name in _FUNCTIONS if defines(language, text, name))
    function = element.get("func", element.get("function", "")) or next(there, _FUNCTIONS[0])
    code = read_code(reading, language, function, given_fields(reading))
    return None if code is None else ScriptSplitter(expression="", code=code)
