"""Regular expressions in linear time.

RE2, because an expression of a model meets texts from outside: no text makes it slow. It knows no
look-around and no references to groups inside an expression.
"""

from functools import lru_cache
from itertools import islice
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from espha.languages.functional.errors import ContextError
from espha.languages.functional.values import bounded

MAX_PATTERN: Final = 2_000
"""Longest regular expression, in characters."""


@lru_cache(maxsize=1_000)
def compiled(pattern: str) -> Any:
    """Return the compiled expression.

    Raises:
        ContextError: RE2 does not know it.
    """
    if len(pattern) > MAX_PATTERN:
        raise ContextError(f"a regular expression has more than {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        if isinstance(reason, bytes):
            reason = reason.decode("utf-8", "replace")
        raise ContextError(
            f"{pattern[:60]!r} is no regular expression of RE2 ({reason}); "
            "look-around and references to groups are not known"
        ) from None


def _known(pattern: str) -> Any | None:
    """Return the expression; None for one from the data that is wrong."""
    try:
        return compiled(pattern)
    except ContextError:
        return None


def find(pattern: str, subject: str, group: int = 0) -> str | None:
    """Return what the group of the first match holds; null without one."""
    expression = _known(pattern)
    match = expression.search(subject) if expression else None
    if match is None or not 0 <= group <= match.re.groups:
        return None
    found: str | None = match.group(group)
    return found


def matches(pattern: str, subject: str) -> int:
    """Return 1 when the expression matches somewhere, else 0."""
    expression = _known(pattern)
    return int(bool(expression and expression.search(subject)))


def position(pattern: str, subject: str) -> int:
    """Return where the first match begins, from 0; -1 without one."""
    expression = _known(pattern)
    match = expression.search(subject) if expression else None
    return int(match.start()) if match else -1


def replace_first(pattern: str, subject: str, new: str) -> str | None:
    """Replace the first match; `$1` in `new` is its first group, also with a backslash."""
    return _replace(pattern, subject, new, 1)


def replace_all(pattern: str, subject: str, new: str) -> str | None:
    """Replace every match."""
    return _replace(pattern, subject, new, 0)


_GROUP = re2.compile(r"[$\\]([0-9])")


def _replace(pattern: str, subject: str, new: str, count: int) -> str | None:
    expression = _known(pattern)
    if expression is None:
        return None

    def filled(match: Any) -> str:
        def group(reference: Any) -> str:
            number = int(reference.group(1))
            return (match.group(number) or "") if number <= expression.groups else ""

        return str(_GROUP.sub(group, new))

    return bounded(str(expression.sub(filled, subject, count)))


def token(pattern: str, subject: str, number: int) -> str | None:
    """Split where the expression matches and return part `number`, from 0."""
    parts = _split(pattern, subject)
    return parts[number] if 0 <= number < len(parts) else None


def last_token(pattern: str, subject: str, number: int = 0) -> str | None:
    """Split where the expression matches and return part `number` from the end, from 0."""
    parts = _split(pattern, subject)
    return parts[-1 - number] if 0 <= number < len(parts) else None


def _split(pattern: str, subject: str) -> list[str]:
    expression = _known(pattern)
    if expression is None:
        return []
    parts, start = [], 0
    for match in expression.finditer(subject):
        if match.end() > match.start():
            parts.append(subject[start : match.start()])
            start = match.end()
    return [*parts, subject[start:]]


def all_matches(pattern: str, subject: str, most: int) -> list[str]:
    """Return the first group of each match, or the match when there are no groups.

    The search ends after `most` matches.
    """
    expression = compiled(pattern)
    group = 1 if expression.groups else 0
    return [match.group(group) or "" for match in islice(expression.finditer(subject), most)]
