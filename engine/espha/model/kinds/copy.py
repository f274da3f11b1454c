"""Copy windows, which keep the rows of their input, for a while or for ever."""

from typing import Literal

from espha.model.kinds.base import Kind, Reading
from espha.model.project import Window
from espha.model.retention import read_retention


class CopyWindow(Window):
    """Keeps the rows of its input."""

    kind: Literal["copy"] = "copy"


def _read(reading: Reading) -> CopyWindow | None:
    fields, findings = reading.feed, reading.findings
    before = len(findings.problems)
    retention = read_retention(reading.element, fields, reading.common["index"], findings)
    if len(findings.problems) > before:
        return None
    return CopyWindow(**{**reading.common, "fields": fields, "retention": retention})


KIND = Kind("copy", _read, elements=frozenset({"retention"}))
