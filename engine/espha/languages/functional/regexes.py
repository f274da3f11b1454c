"""Functions with regular expressions, which are those of `espha.languages.regex`.

A constant pattern is checked when the model is read. One that the data bring and that cannot be
used matches nothing; to replace by it gives null.
"""

import re
from itertools import islice

from espha.languages.functional.errors import FunctionError
from espha.languages.functional.values import bounded
from espha.languages.regex import Regex, RegexError, Spans, compiled, usable

_REFERENCE = re.compile(r"[$\\]([0-9])")


def checked(pattern: str) -> Regex:
    """Return the compiled pattern.

    Raises:
        FunctionError: it cannot be used.
    """
    try:
        return compiled(pattern)
    except RegexError as error:
        raise FunctionError(str(error)) from None


def find(pattern: str, subject: str, group: int = 0) -> str | None:
    """Return what the group of the first match holds; null without one."""
    regex = usable(pattern)
    spans = regex.search(subject) if regex else None
    return None if spans is None else _group(subject, spans, group)


def matches(pattern: str, subject: str) -> int:
    """Return 1 when the pattern matches somewhere, else 0."""
    regex = usable(pattern)
    return int(regex is not None and regex.search(subject) is not None)


def position(pattern: str, subject: str) -> int:
    """Return where the first match begins, from 0; -1 without one."""
    regex = usable(pattern)
    spans = regex.search(subject) if regex else None
    return spans[0][0] if spans else -1


def replace_first(pattern: str, subject: str, new: str) -> str | None:
    """Replace the first match; `$1` in `new` is its first group, also with a backslash."""
    return _replace(pattern, subject, new, 1)


def replace_all(pattern: str, subject: str, new: str) -> str | None:
    """Replace every match."""
    return _replace(pattern, subject, new, None)


def _replace(pattern: str, subject: str, new: str, most: int | None) -> str | None:
    regex = usable(pattern)
    if regex is None:
        return None
    parts, start = [], 0
    for spans in islice(regex.search_all(subject), most):
        parts += [subject[start : spans[0][0]], _filled(new, subject, spans)]
        start = spans[0][1]
    return bounded("".join([*parts, subject[start:]]))


def _filled(new: str, subject: str, spans: Spans) -> str:
    if "$" not in new and "\\" not in new:
        return new
    return _REFERENCE.sub(lambda number: _group(subject, spans, int(number[1])) or "", new)


def _group(subject: str, spans: Spans, number: int) -> str | None:
    if not 0 <= number < len(spans) or spans[number][0] < 0:
        return None
    begin, end = spans[number]
    return subject[begin:end]


def token(pattern: str, subject: str, number: int) -> str | None:
    """Split where the pattern matches and return part `number`, from 0."""
    parts = _split(pattern, subject)
    return parts[number] if 0 <= number < len(parts) else None


def first_token(pattern: str, subject: str, number: int = 0) -> str | None:
    """Split where the pattern matches and return part `number`, from 0."""
    return token(pattern, subject, number)


def last_token(pattern: str, subject: str, number: int = 0) -> str | None:
    """Split where the pattern matches and return part `number` from the end, from 0."""
    parts = _split(pattern, subject)
    return parts[-1 - number] if 0 <= number < len(parts) else None


def _split(pattern: str, subject: str) -> list[str]:
    regex = usable(pattern)
    if regex is None:
        return []
    parts, start = [], 0
    for (begin, end), *_ in regex.search_all(subject):
        if end > begin:
            parts.append(subject[start:begin])
            start = end
    return [*parts, subject[start:]]


def all_matches(pattern: str, subject: str, most: int, group: int | None = None) -> list[str]:
    """Return a group of each match: the first one, or the match when there are no groups.

    The search ends after `most` matches.
    """
    regex = checked(pattern)
    if group is None:
        group = 1 if regex.groups else 0
    found = islice(regex.search_all(subject), most)
    return [_group(subject, spans, group) or "" for spans in found]
