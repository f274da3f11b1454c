"""XML, JSON, lists, sets and maps."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from lxml import etree

from espha.languages.functional.catalog import Function
from espha.languages.functional.errors import FunctionError
from espha.languages.functional.values import MAX_TEXT, Pairs, bounded, integer, settled, text
from espha.model.problems import ModelError
from espha.model.xml import parse

MAX_DEPTH: Final = 100
"""Deepest JSON that is read; deeper, Python's stack would decide."""

Path = tuple[str | int, ...]

_STEP = re.compile(
    r"""\.?(?:(?P<name>[^.\[\]'"\s][^.\[\]'"]*)|\[(?P<place>-?[0-9]{1,9})\]"""
    r"""|\['(?P<single>[^']*)'\]|\["(?P<double>[^"]*)"\])"""
)


@lru_cache(maxsize=1_000)
def json_path(path: str) -> Path:
    """Read `a.b[0]['c d']`, which may begin with `$`; empty is the whole document.

    Raises:
        FunctionError: it is written in another way.
    """
    rest = path.strip().removeprefix("$").strip()
    if rest in {"", "."}:
        return ()
    steps: list[str | int] = []
    place = 0
    while place < len(rest):
        match = _STEP.match(rest, place)
        if match is None:
            raise FunctionError(f"{path[:60]!r} is not a path into JSON; write a.b[0].c")
        kind = match.lastgroup or ""
        steps.append(int(match[kind]) if kind == "place" else match[kind].strip())
        place = match.end()
    return tuple(steps)


def read_json(source: Any) -> Any:
    """Return the document of a text; null when it is none, or deeper than 100."""
    if not isinstance(source, str):
        return source
    if len(source) > MAX_TEXT:
        return None
    try:
        value = _DECODER.decode(source)
        if "\\u" in source:
            # A half of a surrogate pair is not a text: it cannot be stored, searched or sent.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    if source.count("[") + source.count("{") <= MAX_DEPTH:
        return value
    return value if _depth(value) <= MAX_DEPTH else None


def _whole(digits: str) -> int | float | None:
    found = settled(int(digits)) if len(digits) <= 20 else None
    return _float(digits) if found is None else found


def _float(digits: str) -> float | int | None:
    return settled(float(digits))


def _nothing(_: str) -> None:
    return None


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_float, parse_constant=_nothing)


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [part for part in level if isinstance(part, dict | list)]:
        depth += 1
        level = [
            child for part in level for child in (part.values() if isinstance(part, dict) else part)
        ]
    return depth


def at_path(value: Any, path: Path) -> Any:
    """Follow a path; null where it leads nowhere."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def _json(source: Any, path: str = "") -> Any:
    try:
        return at_path(read_json(source), json_path(path))
    except FunctionError:
        return None


def json_elements(source: Any, path: str = "") -> list[Any]:
    """Return the elements of the array at `path`; anything else is one element, null none."""
    found = _json(source, path)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def _array_text(source: Any, path: str = "", separator: str = ",") -> str:
    return bounded(separator.join([text(part) or "" for part in json_elements(source, path)]))


@lru_cache(maxsize=1_000)
def compiled_xpath(path: str, names: tuple[tuple[str, str], ...] = ()) -> etree.XPath:
    """Return the compiled XPath, for a document with these prefixes and their namespaces.

    Raises:
        FunctionError: it is none.
    """
    try:
        return etree.XPath(path, namespaces=dict(names), regexp=False, smart_strings=False)
    except (etree.XPathError, ValueError) as error:
        raise FunctionError(f"{path[:60]!r} is not an XPath ({error})") from None


def read_xml(source: Any) -> Any:
    """Return the root element of a text; null when it is not XML, or has a DOCTYPE."""
    if isinstance(source, etree._Element):
        return source
    if isinstance(source, Pairs):
        source = source.source
    if not isinstance(source, str) or len(source) > MAX_TEXT:
        return None
    try:
        return parse(source, "event")
    except ModelError:
        return None


def select(source: Any, path: str) -> list[Any]:
    """Return what an XPath finds: elements, texts, or one number or condition."""
    element = read_xml(source)
    if element is None:
        return []
    names = tuple(sorted((prefix, uri) for prefix, uri in element.nsmap.items() if prefix))
    try:
        found = compiled_xpath(path, names)(element)
    except (etree.XPathError, ValueError):  # FunctionError is a ValueError
        return []
    return found if isinstance(found, list) else [found]


def _found_text(found: Any) -> Any:
    if isinstance(found, etree._Element):
        return "".join(str(part) for part in found.itertext())
    if isinstance(found, float):
        return settled(found)
    return found if isinstance(found, str | bool) else None  # a namespace axis gives pairs


def _xpath(source: Any, path: str, separator: str | None = None) -> Any:
    """Return the first thing found, as a text or number; with a separator all, as a text."""
    found = select(source, path)
    if separator is not None:
        parts = [text(_found_text(part)) or "" for part in found]
        return bounded(separator.join(parts)) if parts else None
    return _found_text(found[0]) if found else None


def _xml(source: Any, path: str = ".") -> Any:
    found = [part for part in select(source, path) if isinstance(part, etree._Element)]
    return found[0] if found else None


def as_list(source: Any, delimiter: str = ",") -> Sequence[Any]:
    """Return the parts of a list property, an array, or a text with delimiters."""
    if isinstance(source, tuple | list):
        return source
    if isinstance(source, frozenset):
        return sorted(source)
    found = text(source)
    if not found:
        return ()
    return tuple([part.strip() for part in (found.split(delimiter) if delimiter else [found])])


def as_map(source: Any, outer: str, inner: str) -> dict[str, Any]:
    """Return the pairs of a map property, an object, or a text with delimiters."""
    if isinstance(source, dict):
        return source
    result: dict[str, Any] = {}
    for part in as_list(source, outer):
        name, found, value = (text(part) or "").partition(inner or "=")
        if found:
            result[name.strip()] = value.strip()
    return result


def _list_item(source: Any, *how: Any) -> Any:
    """Take the place, or the delimiter and the place, in either order."""
    place, delimiter = how[0], ","
    if len(how) == 2:
        swapped = integer(how[0]) is None
        place, delimiter = (how[1], how[0]) if swapped else (how[0], how[1])
    found = integer(place)
    parts = as_list(source, text(delimiter) or "")
    return parts[found] if found is not None and 0 <= found < len(parts) else None


def _map_value(source: Any, name: str, outer: str = ",", inner: str = "=") -> Any:
    return as_map(source, outer, inner).get(name)


def _map_values(source: Any, delimiter: str = ",") -> str:
    values = as_map(source, ",", "=").values()
    return bounded(delimiter.join([text(value) or "" for value in values]))


def _set_contains(source: Any, value: str, delimiter: str = ",") -> int:
    parts = source if isinstance(source, frozenset) else as_list(source, delimiter)
    return int(any(text(part) == value for part in parts))


def part_of(value: Any, path: str) -> Any:
    """Return `#property/path`: of XML by XPath, otherwise by name or place."""
    if isinstance(value, etree._Element):
        return _xpath(value, path)
    steps = path.split("/")
    for step in steps:
        if isinstance(value, tuple | list):
            value = _list_item(value, step) if step.isdigit() and len(step) < 10 else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


FUNCTIONS: Final[Mapping[str, Function]] = {
    "json": Function("a?j", _json),
    "jsonArray": Function("a?js", _array_text),
    "jsonarray": Function("a?js", _array_text),
    "jsonArraySize": Function("a?j", lambda source, path="": len(json_elements(source, path))),
    "xpath": Function("ax?s", _xpath),
    "xml": Function("a?x", _xml),
    "listItem": Function("aa?a", _list_item),
    "listSize": Function("a?s", lambda source, delimiter=",": len(as_list(source, delimiter))),
    "setContains": Function("as?s", _set_contains),
    "mapValue": Function("as?ss", _map_value),
    "mapValues": Function("a?s", _map_values),
}
