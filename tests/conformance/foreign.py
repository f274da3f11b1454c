"""What a project needs that espha does not have on purpose, read off its XML."""

import re
from dataclasses import dataclass
from typing import Final

from lxml import etree

from espha.model.problems import line_of

_WINDOWS: Final = {
    "window-train": "models are not trained",
    "window-score": "models are not scored",
    "window-model-reader": "models are not read",
    "window-model-supervisor": "models are not supervised",
    "window-textcategory": "SAS text analytics",
    "window-textcontext": "SAS text analytics",
    "window-textsentiment": "SAS text analytics",
    "window-texttopic": "SAS text analytics",
}
_ELEMENTS: Final = {
    "plugin": "C++ code",
    "field-plug": "C++ code",
    "filter-plug": "C++ code",
    "splitter-plug": "C++ code",
    "context-plugin": "C++ code",
    "aggregate-plug": "C++ code",
    "ds-initialize": "DS2 or DATA step code",
    "ds-external": "DS2 or DATA step code",
    "ds2-tableserver": "DS2 or DATA step code",
    "ds2-code": "DS2 or DATA step code",
}
_SOURCES: Final = frozenset({"uvc", "opcua", "pylon", "videocap", "audio", "bacnet", "opencv"})
_OWN: Final = re.compile(r"\buser_\w+\s*\(", re.IGNORECASE)
"""Calls of aggregate functions that a project brings as a library."""

_DS2: Final = "DS2 or DATA step code"


@dataclass(frozen=True, slots=True)
class Foreign:
    """A part of a project that cannot run here.

    Attributes:
        kind: what it is.
        first: the first line of it, or of the window that it is in.
        last: the last line of that.
    """

    kind: str
    first: int
    last: int


def foreign_parts(xml: bytes) -> list[Foreign]:
    """Return the parts of a project that espha does not support on purpose."""
    tree = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True))
    found = []
    for element in tree.iter(etree.Element):
        kind = _kind(element)
        if kind:
            whole = _window(element)
            found.append(Foreign(kind, _first(whole), _last(whole)))
    return found


def _kind(element: etree._Element) -> str:
    tag = str(element.tag)
    if tag == "connector" and element.get("class", "").lower() in _SOURCES:
        return "a source of video, audio or a device"
    if tag == "field-expr" and _OWN.search(element.text or ""):
        return "C++ code"
    if tag == "window-procedural":
        return "" if _python_modules(element) else "C++, DS2 or DATA step code"
    if tag == "mas-module" and element.get("language", "").lower() != "python":
        return _DS2
    parent = element.getparent()
    if tag == "plugin" and parent is not None and parent.tag == "window-custom":
        return ""  # a script
    return _WINDOWS.get(tag) or _ELEMENTS.get(tag, "")


def _python_modules(window: etree._Element) -> bool:
    """Say whether a procedural window calls modules that are written in Python only."""
    called = {part.get("module") for part in window.iter("window-map")}
    modules = list(window.getroottree().iter("mas-module"))
    used = [part for part in modules if part.get("module") in called]
    return bool(used) and all(part.get("language", "").lower() == "python" for part in used)


def _first(element: etree._Element) -> int:
    return line_of(element)


def _last(element: etree._Element) -> int:
    """Return the line of the element's end, as far as it can be told."""
    lines = [_first(part) + (part.text or "").count("\n") for part in element.iter(etree.Element)]
    return max(lines)


def _window(element: etree._Element) -> etree._Element:
    """Return the window that an element is in; itself outside of windows."""
    for part in (element, *element.iterancestors()):
        if str(part.tag).startswith("window-"):
            return part
    return element
