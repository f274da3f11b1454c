"""Properties of connectors of files, as settings of our adapters."""

import re
from collections.abc import Mapping
from typing import Any, Final

from espha.adapters.config import Direction
from espha.adapters.findings import CONNECTION, DATES, SNAPSHOT, Findings, check_names
from espha.connectors.connectors import open_tokens
from espha.connectors.files import (
    SOURCE_PROPERTIES,
    TARGET_PROPERTIES,
    file_source,
    file_target,
    whole_property,
)
from espha.records.layout import CsvLayout

_SOCKET: Final = re.compile(r"[A-Za-z0-9._-]*:\d{1,5}")
_ROTATION: Final = {"periodicity": "rotateSeconds", "maxfilesize": "rotateBytes"}
COLUMNS: Final = ("opcode", "flags", "autogenField", "delimiter")
"""Settings that rows of CSV have only."""
_STREAMS: Final = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_RATE: Final = "rows pass as fast as they come"
_ENDLESS: Final = "the adapter does not end with the file; it waits for more until it is ended"


def is_socket(name: str) -> bool:
    """Tell whether the name of a file is that of a socket, HOST:PORT or :PORT."""
    return _SOCKET.fullmatch(name) is not None


def file_settings(
    direction: Direction, values: Mapping[str, str], found: Findings
) -> dict[str, Any]:
    """Return the settings of a file."""
    name = values.get("fsname", "").strip()
    tokens = open_tokens({"fsname": name})
    if tokens:
        found.refuse(f"fsname: nothing says what @{tokens[0]}@ is")
    if "$" in name:
        found.note(f"fsname {name!r}: variables are the shell's; write what they stand for")
    own = SOURCE_PROPERTIES if direction == "pub" else TARGET_PROPERTIES | {*_ROTATION, "rate"}
    check_names(values, own | CONNECTION, found)
    read = _input_file if direction == "pub" else _output_file
    return read(values, found)


def _input_file(values: Mapping[str, str], found: Findings) -> dict[str, Any]:
    source = file_source(values)
    form = source.layout.format
    if form == "xml":
        found.refuse("fstype xml is not read by the file adapter; use csv or json")
    if source.file in _STREAMS:
        found.refuse(
            f"{source.file} cannot be read on from a position: pipe it into `espha adapter send`"
        )
    if source.rate:
        found.note(f"rate has no effect: {_RATE}")
    for name in ("repeatcount", "maxevents"):
        if whole_property(values, name, 0):
            found.refuse(f"{name} cannot be followed: a file is published whole, and once")
    if not source.growing:
        found.note(_ENDLESS)
    layout = CsvLayout.model_validate(
        source.layout.model_dump(include=set(CsvLayout.model_fields))
    ).model_dump(by_alias=True, exclude_defaults=True)
    if form == "json":
        found.note("objects of JSON stand in lines: one that goes over several lines is not read")
        layout = {name: value for name, value in layout.items() if name not in COLUMNS}
        layout["format"] = form
    growing = {"growing": True} if source.growing else {}
    return {"path": source.file, **growing, **layout}


def _output_file(values: Mapping[str, str], found: Findings) -> dict[str, Any]:
    target = file_target(values)
    if target.format == "xml":
        found.refuse("fstype xml is not written by the file adapter; use csv or json")
    if target.collapse:
        found.refuse("collapse cannot be followed: records are written as they are on the topic")
    if target.drop_retention_deletes:
        found.refuse("rmretdel cannot be followed: records are written as they are on the topic")
    if values.get("rate"):
        found.note(f"rate has no effect: {_RATE}")
    if target.snapshot:
        found.note(f"snapshot has no effect: {SNAPSHOT}")
    if target.date_format:
        found.note(f"dateformat has no effect: {DATES}")
    if values.get("doubleprecision"):
        found.note(f"doubleprecision has no effect: {DATES.replace('dateformat', 'it')}")
    rotation = {ours: whole_property(values, name, 0) for name, ours in _ROTATION.items()}
    return {
        "path": target.file,
        **({"format": "json"} if target.format == "json" else {}),
        **({} if target.header == "none" else {"header": target.header}),
        **{name: limit for name, limit in rotation.items() if limit},
    }
