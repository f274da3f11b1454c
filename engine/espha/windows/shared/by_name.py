"""Several inputs of one window, whose fields go by their names.

The window sees one schema: all fields of all inputs, those of the first one first. What an input
does not have is null in its events.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from espha.languages.functional import field_maker
from espha.model.events import Event, Value
from espha.model.project import Field
from espha.model.types import DOUBLES, INTEGERS, TypeName
from espha.windows.shared.stage import Moment, Unit

_NUMBERS: Final = DOUBLES | {"int32", "int64"}
Make = Callable[[Any], Value]
Schema = tuple[Field, ...]


def merged(schemas: Sequence[Schema]) -> Schema:
    """Return the fields of all schemas, each once.

    Raises:
        ValueError: two schemas have a field of one name with types that do not go together.
    """
    fields: dict[str, Field] = {}
    for schema in schemas:
        for field in schema:
            before = fields.setdefault(field.name, field)
            fields[field.name] = before._replace(type=_common(before, field.type))
    return tuple(fields.values())


def _common(field: Field, other: TypeName) -> TypeName:
    if field.type == other:
        return other
    types = {field.type, other}
    if types <= INTEGERS.keys() and not types >= {"date", "stamp"}:
        return "int64"
    if types <= _NUMBERS:
        return "double"
    if types <= _NUMBERS | INTEGERS.keys() | {"string"}:
        return "string"
    raise ValueError(f"field {field.name!r} is {field.type} in one input and {other} in another")


class ByName:
    """Gives the events of each input the common schema."""

    def __init__(self, schemas: Sequence[Schema]) -> None:
        common = merged(schemas)
        self._ways = [_way(schema, common) for schema in schemas]

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the same events with the fields of all inputs."""
        way = self._ways[at.port]
        return (
            tuple(
                [
                    event._replace(
                        values=tuple([_value(event, place, make) for place, make in way])
                    )
                    for event in unit
                ]
            ),
        )


def _way(schema: Schema, common: Schema) -> list[tuple[int | None, Make | None]]:
    """Return for each common field its place in a schema, and what changes its type."""
    found = {field.name: (place, field.type) for place, field in enumerate(schema)}
    way: list[tuple[int | None, Make | None]] = []
    for field in common:
        place, type_ = found.get(field.name, (None, field.type))
        way.append((place, None if type_ == field.type else field_maker(field.type)))
    return way


def _value(event: Event, place: int | None, make: Make | None) -> Value:
    value = None if place is None else event.values[place]
    return value if make is None else make(value)
