"""Copy windows without retention."""

from typing import Literal

from espha.model.kinds.base import Kind, Reading
from espha.model.project import Window


class CopyWindow(Window):
    """Keeps the rows of its input."""

    kind: Literal["copy"] = "copy"


def _read(reading: Reading) -> CopyWindow | None:
    retention = reading.element.find("retention")
    if retention is not None:
        reading.findings.refuse(retention, "retention is not supported yet; remove it")
        return None
    return CopyWindow(**reading.common, fields=reading.feed)


KIND = Kind("copy", _read, elements=frozenset({"retention"}))
