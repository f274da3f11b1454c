"""Procedural windows: functions of analytic modules in Python."""

from typing import Final

from espha.windows.shared.mas_spec import ProceduralWindow, read_mapped
from espha.windows.shared.spec import Reading, WindowType

_REFUSED: Final = {
    "ds2-tableserver": "DS2 is not run",
    "ds-external": "DATA step code is not run",
    "plugin": "C++ plug-ins are not run",
    "cxx-plugin": "C++ plug-ins are not run",
    "context-plugin": "C++ plug-ins are not run",
    "cxx-plugin-context": "C++ plug-ins are not run",
}
_INSTEAD: Final = "use a module in Python (<mas-map>), window-python or window-lua"


def _read(reading: Reading) -> ProceduralWindow | None:
    refused = [child for child in reading.element if child.tag in _REFUSED]
    for child in refused:
        reading.findings.refuse(child, f"{_REFUSED[str(child.tag)]}; {_INSTEAD}")
    return None if refused else read_mapped(reading)


WINDOW = WindowType(
    "procedural",
    _read,
    "computation",
    elements=frozenset({"schema", "schema-string", "mas-map"}),
    refused=frozenset(_REFUSED),
    inputs=(1, None),
)
