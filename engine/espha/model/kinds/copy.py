"""Copy windows, which keep the rows of their input, for a while or for ever."""

from typing import Literal

from espha.model.kinds.base import Kind, Reading
from espha.model.project import Window


class CopyWindow(Window):
    """Keeps the rows of its input."""

    kind: Literal["copy"] = "copy"


def _read(reading: Reading) -> CopyWindow | None:
    return CopyWindow(**reading.common, fields=reading.feed)


KIND = Kind("copy", _read)
