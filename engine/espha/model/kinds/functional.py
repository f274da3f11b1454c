"""Functional windows without functions: fields go on by name."""

from typing import Literal

from espha.model.kinds.base import Kind, Reading
from espha.model.project import Window
from espha.model.schema import check_keys, check_passed_on, read_schema
from espha.model.xml import children


class FunctionalWindow(Window):
    """Passes fields on by name."""

    kind: Literal["functional"] = "functional"


def _read(reading: Reading) -> FunctionalWindow | None:
    findings, element = reading.findings, reading.element
    for context in element.findall("function-context"):
        for part in children(context, frozenset({"functions", "properties"}), findings):
            for content in part:
                findings.refuse(content, "functions are not supported yet; remove them")
    fields = read_schema(element, findings)
    if fields is None:
        return None
    passed_on = check_passed_on(element, fields, reading.feed, findings)
    if not passed_on or not check_keys(element, fields, reading.feed, findings):
        return None
    return FunctionalWindow(**reading.common, fields=fields)


KIND = Kind(
    "functional",
    _read,
    elements=frozenset({"schema", "schema-string", "function-context"}),
)
