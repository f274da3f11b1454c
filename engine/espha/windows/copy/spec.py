"""Copy windows, which keep the rows of their input, for a while or forever."""

from typing import Literal

from espha.model.project import Window
from espha.windows.shared.spec import Reading, WindowType


class CopyWindow(Window):
    """Keeps the rows of its input."""

    type: Literal["copy"] = "copy"


def _read(reading: Reading) -> CopyWindow | None:
    return CopyWindow(**reading.common, fields=reading.feed)


WINDOW = WindowType("copy", _read, "rows")
