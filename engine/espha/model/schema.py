"""Schemas: `<schema>` in either spelling to fields."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import cast

from lxml import etree

from espha.model.problems import Findings, meant
from espha.model.project import Field
from espha.model.types import TYPES, TypeName
from espha.model.xml import attributes, boolean, children, only_child, text_of

_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_schema(
    window: etree._Element, findings: Findings, *, needs_key: bool = True
) -> tuple[Field, ...] | None:
    """Read the schema of a window; None when there is none or it has problems."""
    element = only_child(window, "schema", findings)
    text = only_child(window, "schema-string", findings)
    if (element is None) == (text is None):
        findings.refuse(window, "needs one <schema> or one <schema-string>")
        return None
    if element is not None and text is None:
        attributes(element, frozenset({"name", "copy", "copy-keys"}), findings)
        text = only_child(element, "schema-string", findings)
    if text is not None:
        return _checked(text, _from_string(text, findings), findings, needs_key)
    assert element is not None  # noqa: S101 - one of the two is there
    return _checked(element, _from_fields(element, findings), findings, needs_key)


def copy_schema(
    window: etree._Element, others: Mapping[str, etree._Element], findings: Findings
) -> None:
    """Give a window whose `<schema copy="w"/>` has no fields those of the window `w`, in place."""
    schema = window.find("schema")
    name = "" if schema is None else schema.get("copy", "").strip()
    if schema is None or not name or len(schema):
        return
    other = others.get(name)
    if other is None:
        findings.refuse(schema, f"copy: there is no window {name!r}{meant(name, others)}")
        return
    for found in other.iterchildren("schema", "schema-string"):
        schema.extend(deepcopy([found] if found.tag == "schema-string" else list(found)))
    if not len(schema):
        findings.refuse(schema, f"copy: window {name!r} has no <schema>; write the fields here")


def given_fields(window: etree._Element) -> tuple[Field, ...]:
    """Return the schema that a window is given, if it is whole; it need not have a key."""
    texts = [*window.findall("schema-string"), *window.findall("schema/schema-string")]
    findings = Findings()
    found = [field for text in texts for field in _from_string(text, findings)]
    for element in window.findall("schema"):
        found += _from_fields(element, findings)
    fields = tuple(field for field in found if field is not None)
    return () if findings.problems else fields


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
    element: etree._Element,
    fields: Sequence[Field | None],
    findings: Findings,
    needs_key: bool,
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
    if needs_key and not any(field.key for field in result):
        findings.refuse(element, "the schema has no key field")
        return None
    return tuple(result)


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
