"""Mutations: small damage, of the kind that people and machines do."""

import random
from collections.abc import Callable, Sequence

from lxml import etree

WORDS = (
    "", " ", "0", "-1", "1e9", "99999999999999999999", "NaN", "null", "true", "id", "id*:int64",
    "x:int64", "pi_EMPTY", "pi_HASH", "I", "U,N", "D", "@TOKEN@", "@ESP_PROJECT_HOME@", "$x", "#x",
    "(", ")", "((((((((((", "'", '"', "\\", "a" * 300, "\u00e4\u4e16\U0001f600", "\u2028", "%s",
    "{}", "x / 0", "x % 0", "return", "if x then", "begin", "end", "fby(e1,e2)", "not", "is:3(e1)",
    "{30 seconds}", "5 seconds", "bytime_sliding", "array(i32)", "blob", "stamp", "1 + ", "[1;2]",
    "function create() return {} end", "def create(d, c): return {}", "while true do end",
    "leftouter", "ESP_aSum(x)", "power(9, 9999)", "concat($s,$s)", "json(#a,'b')",
    "../../etc/passwd", "]]>", "&amp;",
)  # fmt: skip
"""What people write, and what they write by mistake."""

CELLS = ("", "0", "1", "5", "-3", "2.5", " 7 ", "1e3", ".", "-9223372036854775808", '"a,b"')
"""What can stand in a cell."""

_LETTERS = "<>&\"'=/ \t\nabcxyz019:;,.*#$@%()[]{}-_\u00e9"

Mutation = Callable[[random.Random, etree._Element], None]


def mutated_tree(chance: random.Random, text: str) -> str:
    """Return a model with one to four mutations that leave it well-formed."""
    root = etree.fromstring(text.encode(), etree.XMLParser(remove_comments=True))
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        chance.choice(_MUTATIONS)(chance, root)
    return etree.tostring(root, encoding="unicode")


def mutated_text(chance: random.Random, text: str, most: int = 6) -> str:
    """Return a text with one to `most` mutations of its letters."""
    for _ in range(chance.randint(1, most)):
        text = chance.choice(_TEXT_MUTATIONS)(chance, text)
    return text


def mutated_line(chance: random.Random, line: str) -> str:
    """Return a line of CSV with another cell, or with damage to its letters."""
    if chance.random() < 0.5:
        return mutated_text(chance, line, 2)
    cells = line.split(",")
    place = chance.randrange(len(cells))
    cells[place] = chance.choice([*CELLS, *WORDS])
    return ",".join(cells)


def _any(chance: random.Random, root: etree._Element) -> etree._Element:
    return chance.choice(list(root.iter()))


def _inner(chance: random.Random, root: etree._Element) -> etree._Element | None:
    inner = [element for element in root.iter() if element.getparent() is not None]
    return chance.choice(inner) if inner else None


def _drop(chance: random.Random, root: etree._Element) -> None:
    element = _inner(chance, root)
    if element is not None:
        _parent(element).remove(element)


def _double(chance: random.Random, root: etree._Element) -> None:
    element = _inner(chance, root)
    if element is not None:
        _parent(element).append(_copied(element))


def _move(chance: random.Random, root: etree._Element) -> None:
    element = _inner(chance, root)
    if element is not None:
        _any(chance, root).append(_copied(element))


def _rename(chance: random.Random, root: etree._Element) -> None:
    _any(chance, root).tag = str(_any(chance, root).tag)


def _drop_attribute(chance: random.Random, root: etree._Element) -> None:
    element = _any(chance, root)
    if element.attrib:
        del element.attrib[chance.choice(sorted(str(name) for name in element.attrib))]


def _set_attribute(chance: random.Random, root: etree._Element) -> None:
    names = sorted({str(name) for element in root.iter() for name in element.attrib})
    element = _any(chance, root)
    if names:
        own = sorted(str(name) for name in element.attrib)
        name = chance.choice(own if own and chance.random() < 0.7 else names)
        element.set(name, _value(chance, root))


def _set_text(chance: random.Random, root: etree._Element) -> None:
    elements = [element for element in root.iter() if (element.text or "").strip()]
    chance.choice(elements or [root]).text = _value(chance, root)


def _damage_text(chance: random.Random, root: etree._Element) -> None:
    elements = [element for element in root.iter() if (element.text or "").strip()]
    if elements:
        element = chance.choice(elements)
        element.text = _legal(mutated_text(chance, element.text or "", 3))


def _value(chance: random.Random, root: etree._Element) -> str:
    """Return a word, or what stands somewhere else in the model."""
    if chance.random() < 0.5:
        return chance.choice(WORDS)
    element = _any(chance, root)
    values = [str(value) for value in element.attrib.values()]
    return chance.choice([*values, (element.text or "").strip()])


def _parent(element: etree._Element) -> etree._Element:
    parent = element.getparent()
    assert parent is not None
    return parent


def _copied(element: etree._Element) -> etree._Element:
    return etree.fromstring(etree.tostring(element, with_tail=False))


def _legal(text: str) -> str:
    return "".join(letter for letter in text if letter >= " " or letter in "\t\n")


_MUTATIONS: Sequence[Mutation] = (
    _drop, _double, _move, _rename, _drop_attribute, _set_attribute, _set_attribute, _set_text,
    _damage_text, _damage_text,
)  # fmt: skip


def _cut(chance: random.Random, text: str) -> str:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.randint(1, 20) :]


def _insert(chance: random.Random, text: str) -> str:
    place = chance.randrange(len(text) + 1)
    new = chance.choice(WORDS) if chance.random() < 0.5 else chance.choice(_LETTERS)
    return text[:place] + new + text[place:]


def _replace(chance: random.Random, text: str) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(_LETTERS) + text[place + 1 :]


def _repeat(chance: random.Random, text: str) -> str:
    start = chance.randrange(len(text) + 1)
    piece = text[start : start + chance.randint(1, 40)]
    return text[:start] + piece * chance.randint(2, 5) + text[start + len(piece) :]


_TEXT_MUTATIONS: Sequence[Callable[[random.Random, str], str]] = (_cut, _insert, _replace, _repeat)
