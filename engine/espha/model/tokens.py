"""`@TOKEN@` substitution from the project's own properties."""

import re
from collections.abc import Mapping

from lxml import etree

from espha.model.problems import Findings
from espha.model.xml import IGNORED, only_child, properties

_TOKEN = re.compile(r"@([A-Za-z_][A-Za-z0-9_]*)@")


def substitute(project: etree._Element, given: Mapping[str, str], findings: Findings) -> None:
    """Replace tokens in texts and attributes of the project, in place.

    Values come from the project's `<properties>`; `given` wins over them. An unknown token in
    capitals is a mistake and refused; other text between two @ signs may be just text.
    """
    block = only_child(project, "properties", findings)
    holder = etree.Element("project")
    own: dict[str, str] = {}
    if block is not None:
        project.remove(block)
        holder.append(block)
        own = properties(holder, findings)
    values = {**own, **given}
    for element in _used(project):
        if element.text and "@" in element.text:
            element.text = _replaced(element, element.text, values, findings)
        for name in list(element.attrib):
            element.set(name, _replaced(element, element.get(name, ""), values, findings))


def _used(project: etree._Element) -> list[etree._Element]:
    """All elements outside of those that are ignored."""
    result, waiting = [], [project]
    while waiting:
        element = waiting.pop()
        result.append(element)
        waiting.extend(child for child in element if child.tag not in IGNORED)
    return result


def _replaced(
    element: etree._Element, text: str, values: Mapping[str, str], findings: Findings
) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in values:
            return values[name]
        if name.isupper():
            findings.refuse(element, f"token @{name}@ has no value; give it as a project property")
        return match[0]

    return _TOKEN.sub(value, text)
