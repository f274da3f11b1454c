"""Several inputs of one window, whose fields go by their names.

The window sees one schema: all fields of all inputs, those of the first one first. What an input
does not have is null in its events.
"""

from collections.abc import Sequence

from espha.model.events import Event, Value
from espha.model.project import Field
from espha.model.types import DOUBLES, INTEGERS, TypeName
from espha.windows.shared.stage import Moment, Unit

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
    if types <= {"int32", "int64"}:
        return "int64"
    if types <= {"int32", "int64", "double"}:
        return "double"
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
                        values=tuple([_value(event, place, real) for place, real in way])
                    )
                    for event in unit
                ]
            ),
        )


def _way(schema: Schema, common: Schema) -> list[tuple[int | None, bool]]:
    """Return for each common field its place in a schema, and whether it becomes a double."""
    found = {field.name: (place, field.type) for place, field in enumerate(schema)}
    way: list[tuple[int | None, bool]] = []
    for field in common:
        place, type_ = found.get(field.name, (None, field.type))
        way.append((place, field.type in DOUBLES and type_ in INTEGERS))
    return way


def _value(event: Event, place: int | None, real: bool) -> Value:
    value = None if place is None else event.values[place]
    return float(value) if real and isinstance(value, int) else value
