"""The parameters and maps of a calculate window, from XML, checked against its algorithm."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lxml import etree

from espha.model.problems import Findings
from espha.model.project import Field
from espha.model.types import ARRAYS, DOUBLES
from espha.model.xml import only_child, properties
from espha.windows.calculate.contract import Algorithm, Kind, Parameter, Setting
from espha.windows.calculate.maps import Input, Output, Slot, slots_of
from espha.windows.calculate.values import converts

_NUMBERS: Final = frozenset({"int32", "int64", "date", "stamp", *DOUBLES})
_FIELD_TYPES: Final[Mapping[Kind, frozenset[str]]] = {
    "count": _NUMBERS,
    "number": _NUMBERS,
    "text": frozenset({"string"}),
    "any": frozenset({"string", *_NUMBERS}),
    "blob": frozenset({"blob"}),
}
"""What fields an input can have, or a result be written to."""
_TAKES: Final[Mapping[Kind, str]] = {
    "count": "numbers",
    "number": "numbers",
    "text": "strings",
    "any": "strings and numbers",
    "blob": "blobs",
}
_TRUTH: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class MapsReader:
    """Reads the maps of one window; problems go to the findings."""

    def __init__(self, window: etree._Element, findings: Findings, algorithm: Algorithm) -> None:
        self._window = window
        self._findings = findings
        self._algorithm = algorithm

    def _map(self, tag: str, known: Iterable[str]) -> tuple[etree._Element, dict[str, str]]:
        """Read the properties of an element; capitals do not matter in the names of known ones."""
        block = only_child(self._window, tag, self._findings)
        where = self._window if block is None else block
        spelled = {name.lower(): name for name in known}
        texts = properties(block, self._findings)
        return where, {spelled.get(name.lower(), name): text for name, text in texts.items()}

    def _refuse(self, where: etree._Element, reason: str) -> None:
        self._findings.refuse(where, reason)

    def _unknown(self, name: str, known: Iterable[str]) -> str:
        there = ", ".join(known) or "none"
        return f"{self._algorithm.name}: {name!r} is not one of: {there}"

    def settings(self) -> dict[str, Setting]:
        """Read the parameters; those without a value have their defaults."""
        known = self._algorithm.parameters
        where, texts = self._map("parameters", known)
        for name in sorted(set(texts) - set(known)):
            self._findings.warn(where, f"{self._unknown(name, known)}; it has no effect")
        result: dict[str, Setting] = {}
        for name, parameter in known.items():
            value = setting_of(parameter, texts[name]) if texts.get(name) else parameter.default
            if value is None:
                self._refuse(where, f"{name} is {texts[name]!r}; give {wanted(parameter)}")
                value = parameter.default
            result[name] = value
        return result

    def inputs(self, feed: Sequence[Field]) -> tuple[Input, ...]:
        """Read which fields the algorithm looks at."""
        known = self._algorithm.inputs
        where, texts = self._map("input-map", known)
        for name in sorted(set(texts) - set(known)):
            self._findings.warn(where, f"{self._unknown(name, known)}; it has no effect")
        types = {field.name: field.type for field in feed}
        result = []
        for name, role in known.items():
            slots = self._slots(where, texts.get(name, ""))
            if not slots and role.needed:
                self._refuse(where, f"the <input-map> needs the property {name}")
            elif len(slots) > 1 and not role.many:
                self._refuse(where, f"{name} takes one field, not {len(slots)}")
            for slot in slots:
                reason = self._misfit(slot, types, role.kind, role.many)
                if reason:
                    self._refuse(where, f"{name}: {reason}")
                    break
            result.append(Input(name, tuple(slots)))
        return tuple(result)

    def _slots(self, where: etree._Element, text: str) -> list[Slot]:
        try:
            return slots_of(text)
        except ValueError as error:
            self._refuse(where, str(error))
            return []

    def _misfit(self, slot: Slot, types: Mapping[str, str], kind: Kind, many: bool) -> str:
        """Say why a field is no input of this kind; an empty text: it is one."""
        type_ = types.get(slot.field)
        if type_ is None:
            return f"{slot.field!r} is not a field of the input window"
        if slot.element is not None and type_ not in ARRAYS:
            return f"{slot.field!r} is {type_}, not an array"
        element = ARRAYS.get(type_, type_) if many or slot.element is not None else type_
        if element in _FIELD_TYPES[kind]:
            return ""
        return f"{slot.field!r} is {type_}; {self._algorithm.name} takes {_TAKES[kind]}"

    def outputs(self) -> tuple[Output, ...]:
        """Read which results go where."""
        known = self._algorithm.results
        where, texts = self._map("output-map", known)
        for name in sorted(set(texts) - set(known)):
            self._refuse(where, self._unknown(name, known))
        result = []
        for name, text in texts.items():
            slots = self._slots(where, text)
            if name in known and slots:
                if len(slots) > 1 and not known[name].many:
                    self._refuse(where, f"{name} goes to one field, not to {len(slots)}")
                result.append(Output(name, tuple(slots)))
        if not texts:
            self._refuse(where, "the <output-map> needs at least one result")
        return tuple(result)

    def check(self, settings: Mapping[str, Setting], inputs: Iterable[Input]) -> None:
        """Refuse what does not go together."""
        counts = {name: len(slots) for name, slots in inputs}
        reason = self._algorithm.check(settings, counts)
        if reason:
            self._refuse(self._window, reason)

    def check_outputs(self, fields: Sequence[Field], outputs: Iterable[Output]) -> None:
        """Refuse results that do not fit where they go."""
        by_name = {field.name: field for field in fields}
        seen: set[Slot] = set()
        for name, slots in outputs:
            for slot in slots:
                reason = self._unwritable(name, slot, by_name.get(slot.field))
                if slot in seen:
                    reason = f"two results go to {slot.field!r}"
                seen.add(slot)
                if reason:
                    self._refuse(self._window, reason)
                    break

    def _unwritable(self, name: str, slot: Slot, field: Field | None) -> str:
        result = self._algorithm.results[name]
        goes = f"{name} goes to {slot.field!r}, which is"
        if field is None:
            return f"{goes} not in the schema"
        if slot.element is not None and field.type not in ARRAYS:
            return f"{goes} {field.type}, not an array"
        into_array = result.many or slot.element is not None
        element = ARRAYS.get(field.type, field.type) if into_array else field.type
        types = _FIELD_TYPES[result.kind]
        if result.kind in {"count", "number"}:
            types |= {"string"}
        if element not in types:
            return f"{goes} {field.type}, not {' or '.join(sorted(types))}"
        return ""

    def check_passed_on(
        self, fields: Iterable[Field], outputs: Iterable[Output], feed: Iterable[Field]
    ) -> None:
        """Warn of fields that nothing fills; refuse those that cannot be filled by the input."""
        types = {field.name: field.type for field in feed}
        written = {slot.field for output in outputs for slot in output.slots}
        for field in fields:
            found = types.get(field.name)
            if field.name in written:
                continue
            if found is None and field.key:
                self._refuse(self._window, f"key field {field.name!r} is not in the input")
            elif found is None:
                reason = f"field {field.name!r} is not in the input, and no result: it stays null"
                self._findings.warn(self._window, reason)
            elif not converts(found, field.type):
                reason = f"field {field.name!r} is {field.type}, in the input {found}"
                self._refuse(self._window, reason)


def setting_of(parameter: Parameter, text: str) -> Setting | None:
    """Return the value of a parameter; None: the text is none."""
    text = text.strip()
    if parameter.choices:
        return next((word for word in parameter.choices if word.lower() == text.lower()), None)
    if isinstance(parameter.default, str):
        return text
    if isinstance(parameter.default, bool):
        return _TRUTH.get(text.lower())
    number = _number(text, whole=isinstance(parameter.default, int))
    return number if parameter.low <= number <= parameter.high else None


def _number(text: str, *, whole: bool) -> int | float:
    """Return a number, NaN if the text is none; a whole one can have a point: `300.0`."""
    if whole and text.isascii() and text.removeprefix("-").isdigit() and len(text) < 19:
        return int(text)
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan
    if not whole:
        return number
    return int(number) if number.is_integer() and "e" not in text.lower() else math.nan


def wanted(parameter: Parameter) -> str:
    """Say what the values of a parameter are."""
    if parameter.choices:
        return " or ".join(parameter.choices)
    if isinstance(parameter.default, bool):
        return "0 or 1"
    if isinstance(parameter.default, str):
        return "a text"
    kind = "a whole number" if isinstance(parameter.default, int) else "a number"
    return f"{kind} from {parameter.low:g} to {parameter.high:g}"
