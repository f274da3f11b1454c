"""Calculate windows: an algorithm over the last events, or over all."""

import math
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from lxml import etree

from espha.model.project import Field, Window
from espha.model.schema import check_passed_on, read_schema
from espha.model.types import DOUBLES
from espha.model.xml import only_child, properties
from espha.windows.calculate.algorithms import ALGORITHMS, Algorithm, InputType, Parameter
from espha.windows.shared.spec import Reading, WindowType


class Input(NamedTuple):
    """What an algorithm looks at: the fields for one of its inputs, in order."""

    name: str
    fields: tuple[str, ...]


class Setting(NamedTuple):
    """A parameter and its value."""

    name: str
    value: int | float | str


class Output(NamedTuple):
    """A result and the field that it is written to."""

    result: str
    field: str


class CalculateWindow(Window):
    """Runs an algorithm over its events.

    Attributes:
        inputs: in the order of the algorithm's.
        settings: all parameters, with their defaults.
        outputs: in the order of the XML.
        upserts: rows of several events share keys, so they leave as P.
    """

    type: Literal["calculate"] = "calculate"
    algorithm: str
    inputs: tuple[Input, ...]
    settings: tuple[Setting, ...]
    outputs: tuple[Output, ...]
    upserts: bool = False


_COUNTS: Final = frozenset({"int32", "int64", *DOUBLES})
_FIELD_TYPES: Final[Mapping[InputType, frozenset[str]]] = {
    "number": _COUNTS,
    "label": frozenset({"string", *_COUNTS}),
}
_RESULT_TYPES: Final = {"count": _COUNTS, "number": DOUBLES}


def _read(reading: Reading) -> CalculateWindow | None:
    element = reading.element
    before = len(reading.findings.problems)
    name = element.get("algorithm", "")
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        known = ", ".join(ALGORITHMS)
        reading.refuse(f"algorithm {name!r} is not one of: {known}")
        return None
    reader = _Reader(reading, name, algorithm)
    fields = read_schema(element, reading.findings)
    settings, inputs, outputs = reader.settings(), reader.inputs(), reader.outputs()
    reader.check(settings, inputs)
    if fields is None:
        return None
    reader.check_outputs(fields, outputs)
    upserts = reader.check_keys(fields, outputs)
    if len(reading.findings.problems) > before:
        return None
    return CalculateWindow(
        **reading.common,
        fields=fields,
        algorithm=name,
        inputs=inputs,
        settings=settings,
        outputs=outputs,
        upserts=upserts,
    )


class _Reader:
    """Reads the maps of one window; problems go to the findings."""

    def __init__(self, reading: Reading, name: str, algorithm: Algorithm) -> None:
        self._reading = reading
        self._name = name
        self._algorithm = algorithm

    def _map(self, tag: str, known: Mapping[str, object]) -> tuple[etree._Element, dict[str, str]]:
        findings = self._reading.findings
        block = only_child(self._reading.element, tag, findings)
        values = properties(block, findings)
        where = self._reading.element if block is None else block
        for name in sorted(set(values) - set(known)):
            there = ", ".join(known) or "none"
            findings.refuse(where, f"{self._name}: {name!r} is not one of: {there}")
        return where, {name: value for name, value in values.items() if name in known}

    def settings(self) -> tuple[Setting, ...]:
        """Read the parameters."""
        known = self._algorithm.parameters
        where, texts = self._map("parameters", known)
        result = []
        for name, parameter in known.items():
            value = _value(parameter, texts[name]) if texts.get(name) else parameter.default
            if value is None:
                reason = f"{name} is {texts[name]!r}; give {_wanted(parameter)}"
                self._reading.findings.refuse(where, reason)
                value = parameter.default
            result.append(Setting(name, value))
        return tuple(result)

    def inputs(self) -> tuple[Input, ...]:
        """Read which fields the algorithm looks at."""
        known = self._algorithm.inputs
        where, texts = self._map("input-map", known)
        types = {field.name: field.type for field in self._reading.feed}
        result = []
        for name, (type_, many) in known.items():
            names = [part.strip() for part in texts.get(name, "").split(",") if part.strip()]
            if not names:
                self._refuse(where, f"the <input-map> needs the property {name}")
            elif len(names) > 1 and not many:
                self._refuse(where, f"{name} takes one field, not {len(names)}")
            for field in names:
                if field not in types:
                    self._refuse(where, f"{name}: {field!r} is not a field of the input window")
                elif types[field] not in _FIELD_TYPES[type_]:
                    takes = "numbers" if type_ == "number" else "strings and numbers"
                    reason = f"{name} {field!r} is {types[field]}; {self._name} takes {takes}"
                    self._refuse(where, reason)
            result.append(Input(name, tuple(names)))
        return tuple(result)

    def outputs(self) -> tuple[Output, ...]:
        """Read which results go where."""
        where, texts = self._map("output-map", self._algorithm.results)
        if not texts:
            self._refuse(where, "the <output-map> needs at least one statistic")
        return tuple([Output(result, field) for result, field in texts.items()])

    def check(self, settings: tuple[Setting, ...], inputs: tuple[Input, ...]) -> None:
        """Refuse what does not go together."""
        values = {setting.name: setting.value for setting in settings}
        counts = {each.name: len(each.fields) for each in inputs}
        reason = self._algorithm.check(values, counts)
        if reason:
            self._reading.refuse(reason)

    def check_outputs(self, fields: tuple[Field, ...], outputs: tuple[Output, ...]) -> None:
        """Refuse results that do not fit where they go, and fields that come from nowhere."""
        by_name = {field.name: field for field in fields}
        seen: set[str] = set()
        for result, name in outputs:
            field = by_name.get(name)
            types = _RESULT_TYPES[self._algorithm.results[result]]
            tells_apart = result == self._algorithm.rows_by
            if field is None:
                self._reading.refuse(f"{result} goes to {name!r}, which is not in the schema")
            elif field.key and not tells_apart:
                self._reading.refuse(f"{result} goes to {name!r}, which is a key")
            elif field.type not in types:
                wanted = " or ".join(sorted(types))
                reason = f"{result} goes to {name!r}, which is {field.type}, not {wanted}"
                self._reading.refuse(reason)
            if name in seen:
                self._reading.refuse(f"two statistics go to {name!r}")
            seen.add(name)
        passed_on = [field for field in fields if field.name not in seen]
        reading = self._reading
        check_passed_on(reading.element, passed_on, reading.feed, reading.findings)

    def check_keys(self, fields: tuple[Field, ...], outputs: tuple[Output, ...]) -> bool:
        """Refuse keys that do not tell the rows apart; return whether events share rows."""
        keys = {field.name for field in fields if field.key}
        incoming = {field.name for field in self._reading.feed if field.key}
        apart = {field for result, field in outputs if result == self._algorithm.rows_by}
        wanted = ", ".join(sorted(incoming | apart))
        if self._algorithm.rows_by and not keys & apart:
            result = self._algorithm.rows_by
            self._reading.refuse(f"{self._name} gives several rows; make a key of {result}")
        elif keys - apart and keys - apart != incoming:
            found = ", ".join(sorted(keys))
            self._reading.refuse(f"the key is {found}; it must be that of the input, {wanted}")
        return not keys - apart

    def _refuse(self, element: etree._Element, reason: str) -> None:
        self._reading.findings.refuse(element, reason)


def _value(parameter: Parameter, text: str) -> int | float | str | None:
    if parameter.choices:
        return next((word for word in parameter.choices if word.lower() == text.lower()), None)
    if isinstance(parameter.default, str):
        return text
    if isinstance(parameter.default, int):
        sign = text.removeprefix("-")
        if not (sign.isascii() and sign.isdigit() and len(sign) < 10):
            return None
        number: int | float = int(text)
    else:
        try:
            number = float(text) if text.isascii() and "_" not in text else math.nan
        except ValueError:
            return None
    return number if parameter.low <= number <= parameter.high else None


def _wanted(parameter: Parameter) -> str:
    if parameter.choices:
        return " or ".join(parameter.choices)
    kind = "a whole number" if isinstance(parameter.default, int) else "a number"
    return f"{kind} from {parameter.low:g} to {parameter.high:g}"


WINDOW = WindowType(
    "calculate",
    _read,
    "statistics",
    elements=frozenset({"schema", "schema-string", "parameters", "input-map", "output-map"}),
    attributes=frozenset({"algorithm"}),
)
