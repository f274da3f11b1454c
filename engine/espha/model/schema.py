"""Schemas: `<schema>` in either spelling to fields."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import cast

from lxml import etree

from espha.model.problems import Findings
from espha.model.project import Field
from espha.model.types import TYPES, TypeName
from espha.model.xml import attributes, boolean, children, only_child, text_of

_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_schema(window: etree._Element, findings: Findings) -> tuple[Field, ...] | None:
    """Read the schema of a window; None when there is none or it has problems."""
    element = only_child(window, "schema", findings)
    text = only_child(window, "schema-string", findings)
    if (element is None) == (text is None):
        findings.refuse(window, "needs one <schema> or one <schema-string>")
        return None
    if element is not None and text is None:
        attributes(element, frozenset({"name"}), findings)
        text = only_child(element, "schema-string", findings)
    if text is not None:
        return _checked(text, _from_string(text, findings), findings)
    assert element is not None  # noqa: S101 - one of the two is there
    return _checked(element, _from_fields(element, findings), findings)


def _from_string(element: etree._Element, findings: Findings) -> list[Field | None]:
    """Read `ID*:int32,symbol:string`; the star marks a key."""
    result: list[Field | None] = []
    for part in text_of(element).split(","):
        name, colon, type_ = (piece.strip() for piece in part.partition(":"))
        if not colon:
            findings.refuse(element, f"{part.strip()!r} is not name:type")
            return [None]
        result.append(_field(element, name.rstrip("*"), type_, name.endswith("*"), findings))
    return result


def _from_fields(schema: etree._Element, findings: Findings) -> list[Field | None]:
    result: list[Field | None] = []
    for block in children(schema, frozenset({"fields"}), findings):
        for element in children(block, frozenset({"field"}), findings):
            attributes(element, frozenset({"name", "type", "key"}), findings)
            key = boolean(element, "key", findings)
            name, type_ = element.get("name", ""), element.get("type", "")
            result.append(_field(element, name, type_, key, findings))
    return result


def _field(
    element: etree._Element, name: str, type_: str, key: bool, findings: Findings
) -> Field | None:
    if not _FIELD_NAME.fullmatch(name):
        findings.refuse(element, f"{name!r} is not a field name: use letters, digits and _")
        return None
    type_ = type_.strip().lower()
    if type_ not in TYPES:
        known = ", ".join(sorted(TYPES))
        findings.refuse(element, f"type {type_!r} of field {name!r} is not one of: {known}")
        return None
    return Field(name, cast(TypeName, type_), key)


def _checked(
    element: etree._Element, fields: Sequence[Field | None], findings: Findings
) -> tuple[Field, ...] | None:
    result = [field for field in fields if field is not None]
    if len(result) < len(fields):
        return None
    counts = Counter(field.name for field in result)
    doubles = sorted(name for name, count in counts.items() if count > 1)
    if doubles:
        for name in doubles:
            findings.refuse(element, f"field {name!r} occurs twice in the schema")
        return None
    if not any(field.key for field in result):
        findings.refuse(element, "the schema has no key field")
        return None
    return tuple(result)


def check_keys(
    window: etree._Element, fields: Sequence[Field], feed: Sequence[Field], findings: Findings
) -> bool:
    """Refuse a window whose key is not the key of its input."""
    key = [field.name for field in fields if field.key]
    wanted = [field.name for field in feed if field.key]
    if sorted(key) == sorted(wanted):
        return True
    found, expected = ", ".join(key), ", ".join(wanted)
    findings.refuse(window, f"the key is {found}; it must be that of the input, {expected}")
    return False


def check_passed_on(
    window: etree._Element,
    fields: Sequence[Field],
    feed: Sequence[Field],
    findings: Findings,
) -> bool:
    """Refuse fields that should come from the input by name and are not there as they are here."""
    types = {field.name: field.type for field in feed}
    good = True
    for field in fields:
        found = types.get(field.name)
        if found is None:
            findings.refuse(window, f"field {field.name!r} is not in the input")
        elif found != field.type:
            findings.refuse(window, f"field {field.name!r} is {field.type}, in the input {found}")
        good &= found == field.type
    return good
