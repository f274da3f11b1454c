"""Functions on strings: total and bounded. Places count from 1."""

import re
from typing import Any, Final

from espha.languages.eel.dates import read_date
from espha.languages.eel.errors import MAX_TEXT
from espha.languages.eel.value_types import double_from, integer_from

_MAX_COMPARED = 1_000
"""Longest string whose edit distance is computed: the work grows with the square."""
_MAX_PATTERN = 1_000
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_SOUNDS: Final = {
    letter: str(digit)
    for digit, letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1)
    for letter in letters
}


def bounded(text: str) -> str | None:
    """Return `text`, or null when it is too long to be kept."""
    return text if len(text) <= MAX_TEXT else None


def left(text: str, count: float) -> str:
    """Return the first characters."""
    return text[: max(0, int(count))]


def right(text: str, count: float) -> str:
    """Return the last characters."""
    return text[max(0, len(text) - max(0, int(count))) :]


def middle(text: str, start: float, count: float | None = None) -> str:
    """Return `count` characters (all, without it) from the place `start` on."""
    first = max(0, int(start) - 1)
    return text[first:] if count is None else text[first : first + max(0, int(count))]


def place_of(text: str, part: str, occurrence: float = 1) -> int:
    """Return where `part` stands for the n-th time; 0 when it does not."""
    found, wanted = -1, int(occurrence)
    if wanted < 1 or wanted > len(text) + 1 or not part:
        return 0
    for _ in range(wanted):
        found = text.find(part, found + 1)
        if found < 0:
            return 0
    return found + 1


def replace(text: str, part: str, by: str, count: float = -1) -> str | None:
    """Replace each occurrence, or the first `count`."""
    times = text.count(part) if part else 0
    limit = times if count < 0 else min(times, int(count))
    if not limit:
        return text
    if len(text) + limit * (len(by) - len(part)) > MAX_TEXT:
        return None
    return text.replace(part, by, limit)


def repeat(text: str, count: float) -> str | None:
    """Return the text so many times."""
    times = max(0, int(count)) if text else 0  # Python multiplies by no huge number, not even ""
    return text * times if len(text) * times <= MAX_TEXT else None


def match_string(text: str, pattern: str) -> int | None:
    """Say whether all of the text is like the pattern: * is any text, ? any character."""
    if len(pattern) > _MAX_PATTERN or len(text) * len(pattern) > MAX_TEXT:
        return None
    here = there = 0
    star, resume = -1, 0
    while here < len(text):
        if there < len(pattern) and pattern[there] == "*":
            star, resume = there, here
            there += 1
        elif there < len(pattern) and pattern[there] in {"?", text[here]}:
            here, there = here + 1, there + 1
        elif star >= 0:
            resume += 1
            here, there = resume, star + 1
        else:
            return 0
    return int(not pattern[there:].strip("*"))


def edit_distance(one: str, two: str) -> int | None:
    """Return how many characters are put in, left out or changed; null for very long strings."""
    if max(len(one), len(two)) > _MAX_COMPARED:
        return None
    row = list(range(len(two) + 1))
    for count, character in enumerate(one, 1):
        corner, row[0] = row[0], count
        for place, other in enumerate(two, 1):
            corner, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, corner + (character != other)),
            )
    return row[-1]


def compare(one: str, two: str, ignore_case: float = 0) -> int:
    """Return -1, 0 or 1: the first is smaller, equal, larger."""
    if ignore_case:
        one, two = one.lower(), two.lower()
    return (one > two) - (one < two)


def has_control_chars(text: str) -> int:
    """Say whether a control character (ASCII below 32, or 127) is in the text."""
    return int(any(ord(character) < 32 or ord(character) == 127 for character in text))


def words_of(text: str, separator: str) -> tuple[str, ...]:
    """Return the parts of a list; of a separator with several characters the last one counts."""
    return tuple(text.split(separator[-1]) if separator else [text])


def shape(text: str) -> str:
    """Return the text with A for capitals, a for small letters, 9 for digits."""
    return "".join(
        "A" if c.isupper() else "a" if c.isalpha() else "9" if c.isdecimal() else c for c in text
    )


def proper(text: str) -> str:
    """Return the text with a capital at the beginning of each word and small letters behind."""
    return _WORD.sub(lambda word: word[0][0].upper() + word[0][1:].lower(), text)


def sort(text: str, ascending: float = 1, unique: float = 0) -> str:
    """Return the characters of the text in their order."""
    return "".join(_sorted(list(text), ascending, unique))


def sort_words(text: str, ascending: float = 1, unique: float = 0) -> str:
    """Return the words of the text in their order; only blanks separate words."""
    return " ".join(_sorted(text.split(), ascending, unique))


def _sorted(parts: list[str], ascending: float, unique: float) -> list[str]:
    return sorted(set(parts) if unique else parts, reverse=not ascending)


def soundex(text: str) -> str:
    """Return the letter and three digits that names of one sound share (American Soundex)."""
    letters = [letter for letter in text.upper() if "A" <= letter <= "Z"]
    if not letters:
        return ""
    code, before = letters[0], _SOUNDS.get(letters[0], "")
    for letter in letters[1:]:
        sound = _SOUNDS.get(letter, "")
        if sound and sound != before:
            code += sound
        if letter not in "HW":
            before = sound
    return code[:4].ljust(4, "0")


def kind_of(text: str) -> str:
    """Say what a text can be read as."""
    if text.strip().lower() in {"true", "false", "yes", "no"}:
        return "boolean"
    if integer_from(text) is not None and text.strip().lstrip("+-").isdecimal():
        return "integer"
    if double_from(text) is not None:
        return "real"
    return "string" if read_date(text) is None else "date"


def is_blank(value: Any) -> int:
    """Say whether a value is null, empty, or nothing but blanks."""
    return int(value is None or (isinstance(value, str) and not value.strip()))


def is_number(value: Any) -> int:
    """Say whether a value is a number or text that reads as one."""
    if isinstance(value, str):
        return int(double_from(value) is not None)
    return int(isinstance(value, int | float))


def is_alpha(text: str) -> int:
    """Say whether the text is of letters only."""
    return int(text.isalpha())


def character(code: float) -> str | None:
    """Return the character with a Unicode number."""
    number = int(code)
    if not 0 < number < 0x110000 or 0xD800 <= number < 0xE000:
        return None
    return chr(number)


def code_of(text: str) -> int | None:
    """Return the Unicode number of the first character."""
    return ord(text[0]) if text else None
