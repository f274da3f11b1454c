"""`<expr-initialize>` and the expressions of a window: XML to compiled, with problems noted."""

import re
from collections.abc import Sequence
from typing import Final

from lxml import etree

from espha.languages.eel.calls import is_function
from espha.languages.eel.errors import ExpressionError
from espha.languages.eel.language import Expression, Language
from espha.languages.eel.udfs import Initialize, Udf
from espha.model.events import BadRecord
from espha.model.problems import Findings
from espha.model.project import Field
from espha.model.types import TYPES
from espha.model.xml import attributes, children, only_child, text_of

_FIELD_TYPES: Final = {
    "integer": "int64",
    "int": "int64",
    "real": "double",
    "boolean": "int32",
    "timestamp": "stamp",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_language(
    element: etree._Element, fields: Sequence[Field], findings: Findings
) -> Language | None:
    """Read the `<expr-initialize>` below `element`, if there is one.

    Args:
        element: a window, or a splitter.
        fields: schema of the events that its expressions see.
        findings: where problems go.

    Returns:
        The language; its `initialize` is for the project. None: it has problems.
    """
    block = only_child(element, "expr-initialize", findings)
    if block is None:
        return Language(fields)
    before = len(findings.problems)
    spelling = Language(fields)
    udfs = _udfs(block, spelling, findings)
    initializer = only_child(block, "initializer", findings)
    # The type of an initializer's value has no effect: what it declares counts.
    empty = initializer is None or not text_of(initializer)
    text = None if initializer is None or empty else _spelled(initializer, spelling, findings)
    if len(findings.problems) > before:
        return None
    try:
        return Language(fields, Initialize(text=text, udfs=udfs))
    except (ExpressionError, BadRecord) as error:
        findings.refuse(block if initializer is None else initializer, str(error))
        return None


def read_expression(
    element: etree._Element, language: Language, findings: Findings, what: str = ""
) -> Expression | None:
    """Compile the text of an element; None when it has problems. `what` begins the message."""
    try:
        return language.compile(expression_text(element))
    except ExpressionError as error:
        findings.refuse(element, f"{what}{error}")
        return None


def expression_text(element: etree._Element) -> str:
    """Return the expression of an element; a field without one is null."""
    return text_of(element) or ("null" if element.tag == "field-expr" else "")


def _udfs(block: etree._Element, spelling: Language, findings: Findings) -> tuple[Udf, ...]:
    udfs: dict[str, Udf] = {}
    for part in children(block, frozenset({"initializer", "udfs"}), findings):
        if part.tag != "udfs":
            continue
        for element in children(part, frozenset({"udf"}), findings):
            name = element.get("name", "").lower()
            _check_name(element, name, name in udfs, findings)
            _check_type(element, findings)
            text = _spelled(element, spelling, findings)
            udfs[name] = Udf(name=name, type=_type_of(element), text=text)
    return tuple(udfs.values())


def _check_name(element: etree._Element, name: str, again: bool, findings: Findings) -> None:
    attributes(element, frozenset({"name", "type"}), findings)
    if not _NAME.fullmatch(name):
        findings.refuse(element, f"{name!r} is not a name of a function: use letters, digits and _")
    elif is_function(name):
        findings.refuse(element, f"there is a function {name!r} already; take another name")
    elif again:
        findings.refuse(element, f"function {name!r} stands twice in <udfs>")


def _check_type(element: etree._Element, findings: Findings) -> None:
    type_ = _type_of(element)
    if type_ not in TYPES:
        known = ", ".join(sorted(TYPES))
        findings.refuse(element, f"type {type_!r} is not one of: {known}")


def _type_of(element: etree._Element) -> str:
    """Return the type of a function's result; those of variables stand for types of fields."""
    type_ = element.get("type", "").strip().lower()
    return _FIELD_TYPES.get(type_, type_)


def _spelled(element: etree._Element, spelling: Language, findings: Findings) -> str:
    try:
        return spelling.spell(text_of(element))
    except ExpressionError as error:
        findings.refuse(element, str(error))
        return ""
