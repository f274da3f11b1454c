"""What a source has got that is no row: records that every engine puts into the dead letters."""

import csv
import io
import json
from typing import Final, NamedTuple

from espha.protocol.sizes import CUT_BYTES
from espha.records.rows import decode, encode
from espha.records.text import quoted

NOT_A_ROW: Final = "not a row"
"""In place of the opcode: no engine takes such a record, and its dead letter says why."""
_BEGINNINGS: Final = (f"{NOT_A_ROW},".encode(), f'{{"opcode": "{NOT_A_ROW}"'.encode())
_REASON: Final = 4_000


class Unread(NamedTuple):
    """What such a record says.

    Attributes:
        reason: where it was, and what is wrong with it.
        payload: as it came; of more than 64 KiB the beginning.
    """

    reason: str
    payload: bytes


def not_a_row(reason: str, payload: bytes, form: str = "csv") -> bytes:
    """Return the record for a payload, on a topic with records of this form (csv, json).

    Args:
        reason: where the payload was, and what is wrong with it.
        payload: as it came; of a long one the beginning is kept.
        form: how the topic's records are written.
    """
    reason, text = reason[:_REASON], decode(payload[:CUT_BYTES])
    if form == "json":
        content = {"opcode": NOT_A_ROW, "reason": reason, "payload": text}
        line = json.dumps(content)  # ASCII: bytes that are no text are surrogates, escaped
    else:
        line = ",".join((NOT_A_ROW, quoted(reason), quoted(text)))
    return encode(line)


def is_not_a_row(value: bytes) -> bool:
    """Tell whether a record is one that `not_a_row` has made."""
    return value.startswith(_BEGINNINGS)


def read_not_a_row(value: bytes) -> Unread | None:
    """Read such a record back; None: it is another one."""
    text = decode(value)
    if text.startswith(f"{NOT_A_ROW},"):
        cells = next(csv.reader(io.StringIO(text, newline=""), strict=False), [])
        if len(cells) < 3:
            return None
        return Unread(cells[1], encode(",".join(cells[2:])))
    if text.startswith("{") and NOT_A_ROW in text:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if content.get("opcode") == NOT_A_ROW:
            payload = encode(str(content.get("payload", "")))
            return Unread(str(content.get("reason", "")), payload)
    return None
