"""What can be done with a regex variable.

A regex variable holds plain data, so that it can be part of a state: nothing, or the pattern, the
text that was searched last, and where the match and its groups are. Places count from 1.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from espha.languages.eel.errors import MAX_TEXT
from espha.languages.regex import Regex, Spans, compiled, usable

Held = tuple[()] | tuple[str, str | None, Spans | None]
Done = tuple[Held, Any, int]
"""What the variable holds from now on, the result, and the steps that it took."""

_CHARACTERS_OF_A_STEP: Final = 100
_WORK_OF_A_STEP: Final = 10_000
_MATCHES_OF_A_STEP: Final = 10
_REFERENCE: Final = re.compile(r"\\([0-9])")


@dataclass(frozen=True, slots=True)
class Method:
    """One method.

    Attributes:
        takes: one letter an argument: n number, s string.
        gives: the type of its result.
        apply: takes what the variable holds and the arguments.
        needed: how many arguments must be there.
    """

    takes: str
    gives: str
    apply: Callable[..., Done]
    needed: int


def _compile(held: Held, text: str | None, encoding: str | None = None) -> Done:
    """Take a pattern; 1, or 0 for one that cannot be used."""
    if text is None or usable(text) is None:
        return (), 0, 1
    return (text, None, None), 1, 1


def _find_first(held: Held, text: str | None) -> Done:
    """Search from the beginning."""
    return _find(held, text, 0)


def _find_next(held: Held, text: str | None) -> Done:
    """Search behind the last match, if it was in the same text."""
    start = 0
    if held and held[1] == text and held[2] is not None:
        begin, end = held[2][0]
        start = end if end > begin else end + 1
    elif held and held[1] == text and text is not None:
        return held, 0, 1
    return _find(held, text, start)


def _find(held: Held, text: str | None, start: int) -> Done:
    if not held or text is None:
        return held, None, 1
    if start > len(text):
        return (held[0], text, None), 0, 1
    regex = compiled(held[0])
    spans = regex.search(text, start)
    return (held[0], text, spans), int(spans is not None), _steps(regex, len(text) - start)


def _steps(regex: Regex, length: int) -> int:
    """Return the steps of a search: the longer the text and the larger the pattern, the more.

    RE2 mostly takes the same time a character, and for a large pattern up to its size.
    """
    return 1 + length * (_CHARACTERS_OF_A_STEP + regex.size) // _WORK_OF_A_STEP


def _replace(held: Held, text: str | None, by: str | None) -> Done:
    """Replace every match; a backslash and a digit in `by` is a group, or with 0 the match."""
    if not held or text is None or by is None:
        return held, None, 1
    regex = compiled(held[0])
    parts, end, length = [], 0, 0
    for spans in regex.search_all(text):
        parts += [text[end : spans[0][0]], _filled(by, text, spans)]
        end = spans[0][1]
        length += len(parts[-1])
        if length > MAX_TEXT:
            break
    result = "".join([*parts, text[end:]])
    steps = _steps(regex, len(text)) + len(parts) // (2 * _MATCHES_OF_A_STEP)
    steps += len(result) // _CHARACTERS_OF_A_STEP
    return held, result if len(result) <= MAX_TEXT else None, steps


def _filled(by: str, text: str, spans: Spans) -> str:
    def group(reference: re.Match[str]) -> str:
        number = int(reference[1])
        if number >= len(spans) or spans[number][0] < 0:
            return ""
        begin, end = spans[number]
        return text[begin:end]

    return _REFERENCE.sub(group, by) if "\\" in by else by


def _start(held: Held, text: str | None = None) -> Done:
    """Return where the last match begins; null without one."""
    return _place(held, 0, start=True)


def _length(held: Held, text: str | None = None) -> Done:
    """Return how long the last match is; null without one."""
    return _place(held, 0, start=False)


def _group_start(held: Held, number: float | None) -> Done:
    return _place(held, number, start=True)


def _group_length(held: Held, number: float | None) -> Done:
    return _place(held, number, start=False)


def _place(held: Held, number: float | None, *, start: bool) -> Done:
    spans = held[2] if held else None
    if spans is None or number is None or not 0 <= int(number) < len(spans):
        return held, None, 1
    begin, end = spans[int(number)]
    if begin < 0:
        return held, None, 1
    return held, begin + 1 if start else end - begin, 1


def _groups(held: Held) -> Done:
    """Return how many groups the pattern has; null without one."""
    return held, compiled(held[0]).groups if held else None, 1


METHODS: Final[dict[str, Method]] = {
    "compile": Method("ss", "int", _compile, 1),
    "findfirst": Method("s", "int", _find_first, 1),
    "findnext": Method("s", "int", _find_next, 1),
    "matchstart": Method("s", "int", _start, 0),
    "matchlength": Method("s", "int", _length, 0),
    "substringcount": Method("", "int", _groups, 0),
    "substringstart": Method("n", "int", _group_start, 1),
    "substringlength": Method("n", "int", _group_length, 1),
    "replace": Method("ss", "string", _replace, 2),
    "substitute": Method("ss", "string", _replace, 2),
}
