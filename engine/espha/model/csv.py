"""Events as lines of ESP's CSV."""

import csv
import io

from espha.model.events import BadRecord, Event
from espha.model.project import Field
from espha.model.types import format_text, parse_text


def parse_event(line: str, fields: tuple[Field, ...]) -> Event:
    """Read `opcode,flags,field,…`.

    Raises:
        BadRecord: the line has other cells than the schema has fields, or one of another type.
    """
    rows = list(csv.reader([line], skipinitialspace=True))
    cells = rows[0] if rows else []
    if len(cells) != len(fields) + 2:
        raise BadRecord(
            f"{len(cells)} cells where the schema wants {len(fields) + 2} (opcode, flags, "
            f"{len(fields)} fields)"
        )
    values = []
    for field, cell in zip(fields, cells[2:], strict=True):
        try:
            values.append(parse_text(field.type, cell))
        except ValueError as error:
            raise BadRecord(f"field {field.name}: {error}") from None
    return Event(cells[0].strip().upper(), cells[1].strip().upper(), tuple(values))


def format_event(event: Event, fields: tuple[Field, ...]) -> str:
    """Write `I,N, v1,v2`: a space behind the flags, doubles with six decimals, null empty."""
    out = io.StringIO()
    texts = [format_text(field.type, v) for field, v in zip(fields, event.values, strict=True)]
    csv.writer(out, lineterminator="").writerow(texts)
    return f"{event.opcode},{event.flags}, {out.getvalue()}"
