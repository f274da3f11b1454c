"""Texts."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote_plus

from espha.languages.functional import regexes
from espha.languages.functional.catalog import Function
from espha.languages.functional.values import bounded, equal, text


def _concat(*values: Any) -> str:
    return bounded("".join([text(value) or "" for value in values]))


def _string(*values: Any) -> str | None:
    return None if values == (None,) else _concat(*values)


def _concat_with(separator: Any, *values: Any) -> str:
    return bounded((text(separator) or "").join([text(value) or "" for value in values]))


def _substring(value: str, start: int, length: int | None = None) -> str:
    start = max(start, 0)
    return value[start:] if length is None else value[start : start + max(length, 0)]


def _index(value: Any, *others: Any) -> int:
    """Return which of the others equals `value`, from 0; -1: none."""
    for place, other in enumerate(others):
        if equal(value, other):
            return place
    return -1


def _replace(value: str, old: str, new: str) -> str:
    if not old:
        return value
    # Counted first: a text that is too long shall not exist even for a moment.
    length = len(value) + value.count(old) * (len(new) - len(old))
    return value.replace(old, new) if length <= len(value) else bounded(value.replace(old, new))


def _translate(value: str, old: str, new: str) -> str:
    """Replace letters as XPath's translate does: those without a counterpart vanish."""
    table: dict[int, str | None] = {}
    for place, letter in enumerate(old):
        table.setdefault(ord(letter), new[place] if place < len(new) else None)
    return value.translate(table)


def _encode(value: Any) -> str:
    data = value if isinstance(value, bytes) else (text(value) or "").encode()
    return base64.b64encode(data).decode()


def _decode(value: str) -> str | None:
    data = _decode_bytes(value)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _decode_bytes(value: str) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def _condition(test: Callable[[str, str], bool]) -> Function:
    return Function("ss", lambda value, part: int(test(value, part)))


FUNCTIONS: Final[Mapping[str, Function]] = {
    "concat": Function("a*", _concat, nulls=True),
    "concatDelim": Function("aa*", _concat_with, nulls=True),
    "string": Function("a*", _string, nulls=True),
    "substring": Function("si?i", _substring),
    "substringBefore": Function(
        "ss", lambda value, part: value.partition(part)[0] if part and part in value else ""
    ),
    "substringAfter": Function(
        "ss", lambda value, part: value.partition(part)[2] if part else value
    ),
    "toUpper": Function("s", str.upper),
    "toLower": Function("s", str.lower),
    "stringLength": Function("s", len),
    "length": Function("s", len),
    "startsWith": _condition(str.startswith),
    "endsWith": _condition(str.endswith),
    "contains": _condition(str.__contains__),
    "replace": Function("sss", _replace),
    "translate": Function("sss", _translate),
    "trim": Function("s", str.strip),
    "normalizeSpace": Function("s", lambda value: " ".join(value.split())),
    "index": Function("aa*", _index, nulls=True),
    "indexOf": Function("ss?i", lambda value, part, start=0: value.find(part, max(start, 0))),
    "lastIndexOf": Function("ss", str.rfind),
    "quote": Function("s", lambda value: f'"{value}"'),
    "urlEncode": Function("s", lambda value: bounded(quote(value, safe=""))),
    "urlDecode": Function("s", unquote_plus),
    "base64Encode": Function("a", lambda value: bounded(_encode(value))),
    "base64EncodeBinary": Function("a", lambda value: bounded(_encode(value))),
    "base64Decode": Function("s", _decode),
    "base64DecodeBinary": Function("s", _decode_bytes),
    "rgx": Function("ps?i", regexes.find),
    "rgxMatch": Function("ps", regexes.matches),
    "rgxIndex": Function("ps", regexes.position),
    "rgxReplace": Function("pss", regexes.replace_first),
    "rgxReplaceAll": Function("pss", regexes.replace_all),
    "rgxToken": Function("psi", regexes.token),
    "rgxFirstToken": Function("ps?i", regexes.first_token),
    "rgxLastToken": Function("ps?i", regexes.last_token),
}
