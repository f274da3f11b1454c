"""`@TOKEN@` substitution from properties of the project and from outside."""

import re
from collections.abc import Iterator, Mapping

from lxml import etree

from espha.model.problems import Findings
from espha.model.xml import IGNORED, MAX_BYTES, text_of

TOKEN = re.compile(r"@([A-Za-z_][A-Za-z0-9_.-]*)@")
"""A token in a text; in capitals it must have a value, else it may be just text."""

_DEPTH = 10

STAND_IN = "1"
"""The value of a token without one when a model is only checked: it fits most places."""


def substitute(
    project: etree._Element,
    given: Mapping[str, str],
    findings: Findings,
    *,
    environment: Mapping[str, str] | None = None,
    checking: bool = False,
) -> None:
    """Replace tokens in texts and attributes of the project, in place.

    Values come from the project's `<properties>`, and can hold tokens themselves; `given` wins
    over them, and they win over the environment. A token without a value is refused; in
    connectors it stays and is a warning, since a model can run without them.

    Args:
        project: the element; its properties are taken out of it.
        given: values from outside.
        findings: where problems go.
        environment: variables around us, for what has no value otherwise.
        checking: the model is not going to run: a token without a value is a warning.
    """
    own = _own_properties(project, findings)
    built_in = {"ESP_PROJECT_NAME": project.get("name", "")}
    values = _expanded({**(environment or {}), **built_in, **own, **given}, project, findings)
    budget = MAX_BYTES
    for element, in_connector in _used(project):
        replaced = _Replacing(element, values, findings, checking, in_connector)
        if element.text and "@" in element.text:
            element.text = replaced.text(element.text)
            budget -= len(element.text)
        for name, value in list(element.attrib.items()):
            if "@" in value:
                element.set(name, replaced.text(str(value)))
                budget -= len(element.get(name, ""))
        if budget < 0:
            findings.refuse(element, "tokens make the model larger than 2 MiB")
            return


def named_tokens(text: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return those of `values` that a text names as tokens."""
    return {name: values[name] for name in set(TOKEN.findall(text)) if name in values}


def _own_properties(project: etree._Element, findings: Findings) -> dict[str, str]:
    """Take the properties out of the project (and of the engine around it); the last one wins."""
    own: dict[str, str] = {}
    root = project.getroottree().getroot()
    for holder in [root, project] if root is not project else [project]:
        for block in [*holder.findall("properties"), *holder.findall("property")]:
            for item in block.iter("property"):
                name = item.get("name", "").strip().strip("@")
                if name:
                    own[name] = text_of(item) or item.get("value", "")
                else:
                    findings.refuse(item, "a property needs a name")
            holder.remove(block)
    return own


def _expanded(
    values: Mapping[str, str], project: etree._Element, findings: Findings
) -> dict[str, str]:
    """Replace tokens in the values of tokens."""
    result = dict(values)
    for _ in range(_DEPTH):
        open_names = [
            name for name, text in result.items() if any(n in result for n in TOKEN.findall(text))
        ]
        if not open_names:
            return result
        for name in open_names:
            if _size(result[name], result) > MAX_BYTES // 16:
                findings.refuse(project, f"property {name!r} is longer than 128 KiB")
                return dict.fromkeys(values, "")
            result[name] = TOKEN.sub(lambda match: result.get(match[1], match[0]), result[name])
    findings.refuse(project, f"properties refer to each other more than {_DEPTH} deep")
    return dict.fromkeys(values, "")


def _size(text: str, values: Mapping[str, str]) -> int:
    """Return how long a text becomes, before it is made."""
    return len(text) + sum(len(values.get(name, "")) for name in TOKEN.findall(text))


def _used(project: etree._Element) -> Iterator[tuple[etree._Element, bool]]:
    """Yield all elements outside of those that are ignored, and whether a connector has them."""
    waiting = [(project, False)]
    while waiting:
        element, in_connector = waiting.pop()
        yield element, in_connector
        waiting.extend(
            (child, in_connector or child.tag == "connector")
            for child in element
            if child.tag not in IGNORED
        )


class _Replacing:
    """Replaces tokens in the texts of one element."""

    def __init__(
        self,
        element: etree._Element,
        values: Mapping[str, str],
        findings: Findings,
        checking: bool,
        in_connector: bool,
    ) -> None:
        self._element, self._values, self._findings = element, values, findings
        self._checking, self._in_connector = checking, in_connector

    def text(self, text: str) -> str:
        """Return the text with values for its tokens."""
        if _size(text, self._values) > MAX_BYTES:
            self._findings.refuse(self._element, "tokens make this longer than 2 MiB")
            return ""
        return TOKEN.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        if name in self._values:
            return self._values[name]
        if not name.isupper():
            return match[0]
        if self._in_connector:
            self._findings.warn(self._element, f"token @{name}@ has no value")
            return match[0]
        if self._checking:
            reason = f"token @{name}@ has no value; checked as if it were {STAND_IN}"
            self._findings.warn(self._element, reason)
            return STAND_IN
        reason = f"token @{name}@ has no value; give it as a project property or with --set"
        self._findings.refuse(self._element, reason)
        return match[0]
