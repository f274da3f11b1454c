"""Between rows and algorithms: the values that one looks at, and the rows that results make."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

from espha.model.events import Value
from espha.model.literals import INT32, INT64
from espha.model.project import Field
from espha.model.types import ARRAYS, DOUBLES
from espha.windows.calculate.maps import Input, Output, Slot
from espha.windows.calculate.values import converter

Row = tuple[Value, ...]
Results = Sequence[Any]
Take = Callable[[Any], Any]

_SIZES: Final = {**dict.fromkeys(DOUBLES, math.inf), "int64": INT64[1], "int32": INT32[1]}


def looker(inputs: Iterable[Input], many: Iterable[bool], feed: Sequence[Field]) -> Take:
    """Return the function that gives the values of the inputs of a row, in their order.

    An input of one field is its value, null where it is not mapped; one of a list of fields is a
    tuple of their values.
    """
    places = {field.name: place for place, field in enumerate(feed)}
    pairs = list(zip(inputs, many, strict=True))
    plain = [
        places[input_.slots[0].field]
        for input_, is_list in pairs
        if not is_list and input_.slots and input_.slots[0].element is None
    ]
    if len(plain) < len(pairs):
        takes = [_list(each, places) if is_list else _one(each, places) for each, is_list in pairs]
        return lambda row: tuple([take(row) for take in takes])
    if len(plain) > 1:
        return itemgetter(*plain)
    (place,) = plain  # most algorithms look at one field
    return lambda row: (row[place],)


def _one(input_: Input, places: dict[str, int]) -> Take:
    if not input_.slots:
        return lambda row: None
    return _slot(input_.slots[0], places)


def _slot(slot: Slot, places: dict[str, int]) -> Take:
    place, element = places[slot.field], slot.element
    if element is None:
        return itemgetter(place)

    def take(row: Row) -> Any:
        array = row[place]
        return array[element] if isinstance(array, tuple) and element < len(array) else None

    return take


def _list(input_: Input, places: dict[str, int]) -> Take:
    takes = [_slot(slot, places) for slot in input_.slots]

    def take(row: Row) -> tuple[Any, ...]:
        values: list[Any] = []
        for each in takes:
            value = each(row)
            if isinstance(value, tuple):
                values += value  # a whole array
            else:
                values.append(value)
        return tuple(values)

    return take


class Writer:
    """Turns the results of an algorithm into the values of the fields that they are written to.

    Attributes:
        fields: names of these fields, in the order of the schema.
        wanted: names of the results, in the order in which `values` takes them.
    """

    def __init__(
        self, outputs: Iterable[Output], lists: Collection[str], fields: Sequence[Field]
    ) -> None:
        """Find the ways from results to fields.

        Args:
            outputs: which results go where.
            lists: the results that are lists.
            fields: the schema.
        """
        goes: dict[str, list[tuple[Slot, str, int]]] = {}
        lengths = {output.result: len(output.slots) for output in outputs}
        for output in outputs:
            for number, slot in enumerate(output.slots):
                goes.setdefault(slot.field, []).append((slot, output.result, number))
        written = [field for field in fields if field.name in goes]
        self.fields = [field.name for field in written]
        self.wanted = list(
            dict.fromkeys(result for name in self.fields for _, result, _ in goes[name])
        )
        self._takes: list[Take] | None = None
        if any(
            slot.element is not None or (result in lists and field.type not in ARRAYS)
            for field in written
            for slot, result, _ in goes[field.name]
        ):
            self._takes = [self._take(goes[field.name], field, lengths) for field in written]
        self._makes = [converter(field.type) for field in written]
        # What need not be converted: values of this type, of a size below this one.
        self._types = [float if field.type in DOUBLES else int for field in written]
        self._sizes = [_SIZES.get(field.type, 0) for field in written]

    def _take(
        self, pieces: list[tuple[Slot, str, int]], field: Field, lengths: dict[str, int]
    ) -> Take:
        """Return the function that takes the value of a field out of results."""
        slot, result, number = pieces[0]
        place = self.wanted.index(result)
        if slot.element is None:
            whole = lengths[result] == 1 and field.type in ARRAYS
            return itemgetter(place) if whole else _part(place, number)
        parts = {
            slot.element or 0: _part(self.wanted.index(result), number)
            for slot, result, number in pieces
        }
        takes = [parts.get(element) for element in range(max(parts) + 1)]
        return lambda results: [None if take is None else take(results) for take in takes]

    def values(self, results: Results) -> list[Value]:
        """Return the values of the fields."""
        if self._takes is not None:
            results = [take(results) for take in self._takes]
        return [
            value if type(value) is type_ and -size < value < size else make(value)
            for value, type_, size, make in zip(
                results, self._types, self._sizes, self._makes, strict=True
            )
        ]


def _part(place: int, number: int) -> Take:
    """Return the function that takes one value of a result; what is no list has one value."""

    def take(results: Results) -> Any:
        result = results[place]
        if isinstance(result, list | tuple):
            return result[number] if number < len(result) else None
        return result if number == 0 else None

    return take


class RowMaker:
    """Makes the window's rows of those that come along one edge, and of written values."""

    def __init__(self, fields: Sequence[Field], written: Sequence[str], feed: Sequence[Field]):
        places = {field.name: place for place, field in enumerate(feed)}
        width, null = len(feed), len(feed) + len(written)
        sources = [
            width + written.index(field.name)
            if field.name in written
            else places.get(field.name, null)
            for field in fields
        ]
        # Most often the results are appended to the fields of the input as they are.
        self._appended = sources == list(range(null))
        self._null: Row = (None,) if null in sources else ()
        self._pick: Take = itemgetter(*sources) if len(sources) > 1 else _single(sources[0])
        self._casts = [
            (place, converter(field.type))
            for place, (field, source) in enumerate(zip(fields, sources, strict=True))
            if source < width and feed[source].type != field.type
        ]
        if self._casts:
            self._appended = False

    def row(self, given: Row, made: Iterable[Value]) -> Row:
        """Return a row."""
        if self._appended:
            return (*given, *made)
        row: Row = self._pick((*given, *made, *self._null))
        if not self._casts:
            return row
        changed = list(row)
        for place, cast in self._casts:
            changed[place] = cast(changed[place])
        return tuple(changed)


def _single(source: int) -> Take:
    return lambda values: (values[source],)
