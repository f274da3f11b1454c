"""Calculate windows with the algorithm Summary."""

from typing import Literal, NamedTuple, cast, get_args

from lxml import etree

from espha.model.kinds.base import Kind, Reading
from espha.model.project import Field, Window
from espha.model.schema import check_keys, check_passed_on, read_schema
from espha.model.types import DOUBLES
from espha.model.xml import only_child, properties

Statistic = Literal[
    "nOut", "nmissOut", "minOut", "maxOut", "sumOut", "meanOut",
    "stdOut", "varOut", "cssOut", "ussOut", "stderrOut", "cvOut",
]  # fmt: skip


class Output(NamedTuple):
    """A statistic and the field that it is written to."""

    statistic: Statistic
    field: str


class CalculateWindow(Window):
    """Statistics of the field `input` over the last `window_length` events."""

    kind: Literal["calculate"] = "calculate"
    algorithm: Literal["Summary"]
    input: str
    window_length: int
    outputs: tuple[Output, ...]


MAX_WINDOW_LENGTH = 100_000
"""Each event computes over the whole window, so its length is what an event costs."""

_STATISTICS = get_args(Statistic)
_COUNTS = frozenset({"nOut", "nmissOut"})
_COUNT_TYPES = frozenset({"int32", "int64", *DOUBLES})
_INPUT_TYPES = _COUNT_TYPES


def _read(reading: Reading) -> CalculateWindow | None:
    findings, element = reading.findings, reading.element
    before = len(findings.problems)
    if element.get("algorithm") != "Summary":
        found = element.get("algorithm", "")
        reading.refuse(f"algorithm {found!r} is not supported; there is Summary")
        return None
    fields = read_schema(element, findings)
    length = _window_length(element, reading)
    input_ = _input(element, reading)
    outputs = _outputs(element, reading)
    if fields is None:
        return None
    _check_outputs(fields, outputs, reading)
    written = {output.field for output in outputs}
    check_keys(element, fields, reading.feed, findings)
    passed_on = [field for field in fields if field.name not in written]
    check_passed_on(element, passed_on, reading.feed, findings)
    if len(findings.problems) > before:
        return None
    return CalculateWindow(
        **reading.common,
        fields=fields,
        algorithm="Summary",
        input=input_,
        window_length=length,
        outputs=tuple(outputs),
    )


def _map(element: etree._Element, tag: str, known: set[str], reading: Reading) -> dict[str, str]:
    block = only_child(element, tag, reading.findings)
    values = properties(block, reading.findings)
    for name in sorted(set(values) - known):
        there = ", ".join(sorted(known))
        where = element if block is None else block
        reading.findings.refuse(where, f"{name!r} is not known to Summary; there are {there}")
    return {name: value for name, value in values.items() if name in known}


def _window_length(element: etree._Element, reading: Reading) -> int:
    text = _map(element, "parameters", {"windowLength"}, reading).get("windowLength", "")
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MAX_WINDOW_LENGTH:
        return int(text)
    reading.refuse(f"windowLength is {text!r}; give a whole number from 1 to {MAX_WINDOW_LENGTH}")
    return 0


def _input(element: etree._Element, reading: Reading) -> str:
    name = _map(element, "input-map", {"input"}, reading).get("input", "")
    types = {field.name: field.type for field in reading.feed}
    if not name:
        reading.refuse("the <input-map> needs the property input")
    elif name not in types:
        reading.refuse(f"input {name!r} is no field of the window before it")
    elif types[name] not in _INPUT_TYPES:
        reading.refuse(f"input {name!r} is {types[name]}; Summary takes numbers")
    return name


def _outputs(element: etree._Element, reading: Reading) -> list[Output]:
    values = _map(element, "output-map", set(_STATISTICS), reading)
    if not values:
        reading.refuse("the <output-map> needs at least one statistic")
    return [Output(cast(Statistic, statistic), name) for statistic, name in values.items()]


def _check_outputs(fields: tuple[Field, ...], outputs: list[Output], reading: Reading) -> None:
    by_name = {field.name: field for field in fields}
    seen: set[str] = set()
    for statistic, name in outputs:
        field = by_name.get(name)
        types = _COUNT_TYPES if statistic in _COUNTS else DOUBLES
        if field is None:
            reading.refuse(f"{statistic} goes to {name!r}, which is not in the schema")
        elif field.key:
            reading.refuse(f"{statistic} goes to {name!r}, which is a key")
        elif field.type not in types:
            wanted = " or ".join(sorted(types))
            reading.refuse(f"{statistic} goes to {name!r}, which is {field.type}, not {wanted}")
        if name in seen:
            reading.refuse(f"two statistics go to {name!r}")
        seen.add(name)


KIND = Kind(
    "calculate",
    _read,
    elements=frozenset({"schema", "schema-string", "parameters", "input-map", "output-map"}),
    attributes=frozenset({"algorithm"}),
)
