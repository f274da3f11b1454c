"""Trees to text: equal trees have equal texts, and a text reads back as its tree."""

import re
from collections.abc import Callable
from typing import cast

from espha.languages.eel.dates import text_of_date
from espha.languages.eel.syntax import Node

Spell = Callable[[str], str]
"""How a name is written; fields have the spelling of the schema."""

_PLAIN = re.compile(
    r"(?!(?:and|or|not|if|then|else|begin|end|return|while|for|true|false|null)\b)"
    r"[A-Za-z_][A-Za-z0-9_]*",
    re.IGNORECASE | re.ASCII,
)


def canonical(node: Node, spell: Spell) -> str:
    """Return the text of a block."""
    return "; ".join(_statement(part, spell) for part in node.parts)


def declared_names(node: Node) -> set[str]:
    """Return the names of all variables that are declared in a tree, in small letters."""
    own = {node.words[2]} if node.what == "declare" else set()
    return own.union(*(declared_names(part) for part in node.parts))


def quoted(name: str) -> str:
    """Return how a field is written."""
    return name if _PLAIN.fullmatch(name) else f"`{name}`"


def _statement(node: Node, spell: Spell) -> str:
    match node.what:
        case "declare":
            scope, type_, name, *size = node.words
            value = f" = {_text(node.parts[0], spell)}" if node.parts else ""
            value += "".join(f"({count})" for count in size)
            return f"{scope} {type_} {name}{value}".lstrip()
        case "assign":
            return f"{spell(node.words[0])} = {_text(node.parts[0], spell)}"
        case "if":
            return _if(node, spell)
        case "while":
            return f"while {_text(node.parts[0], spell)} {_body(node.parts[1], spell)}"
        case "for":
            first, last, step = (_text(part, spell) for part in node.parts[:3])
            head = f"for {spell(node.words[0])} = {first} to {last} step {step}"
            return f"{head} {_body(node.parts[3], spell)}"
        case "return":
            return f"return {_text(node.parts[0], spell)}" if node.parts else "return"
    return _text(node.parts[0], spell)


def _if(node: Node, spell: Spell) -> str:
    pairs = zip(node.parts[::2], node.parts[1::2], strict=False)
    texts = [f"if {_text(test, spell)} then {_body(block, spell)}" for test, block in pairs]
    if len(node.parts) % 2:
        texts.append(_body(node.parts[-1], spell))
    return " else ".join(texts)


def _body(block: Node, spell: Spell) -> str:
    return f"begin {canonical(block, spell)} end"


def _text(node: Node, spell: Spell) -> str:
    match node.what:
        case "literal":
            return _literal(node)
        case "name" | "quoted":
            return spell(node.words[0])
    texts = [_text(part, spell) for part in node.parts]
    match node.what:
        case "call":
            return f"{node.words[0]}({', '.join(texts)})"
        case "method":
            return f"{spell(node.words[0])}.{node.words[1]}({', '.join(texts)})"
        case "chain":
            rest = (f" {word} {text}" for word, text in zip(node.words, texts[1:], strict=True))
            return f"({texts[0]}{''.join(rest)})"
        case "among":
            return f"({texts[0]} in ({', '.join(texts[1:])}))"
        case "minus":
            return f"(-{texts[0]})"
        case "not":
            return f"(not {texts[0]})"
    words = {"join": "&", "either": "or", "both": "and", "compare": "".join(node.words)}
    return f"({f' {words[node.what]} '.join(texts)})"


def _literal(node: Node) -> str:
    if node.words == ("null",):
        return "null"
    if node.words == ("date",):
        return f"#{text_of_date(cast(int, node.value))}#"
    if isinstance(node.value, str):
        quote = "'" if '"' in node.value and "'" not in node.value else '"'
        return quote + node.value.replace(quote, quote * 2) + quote
    return repr(node.value)
