"""Contents of the web as events: the configuration of a url or websocket connector.

Such a configuration says with functions and loops what a functional window says. So it is one here,
behind a source whose events are the contents.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Final

from lxml import etree

from espha.kernel import Kernel
from espha.model import ModelError, Window
from espha.model.events import BadRecord, Event
from espha.model.tokens import TOKEN
from espha.model.xml import parse, text_of
from espha.reader import read_project

MAX_CONFIGURATION: Final = 1024 * 1024
_PARTS: Final = ("function-context", "event-loops", "generate")
_CONTENT: Final = "_content"
_HIGH: Final = r"u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = r"u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = re.compile(rf"\\(?:{_HIGH}\\{_LOW}|(?P<half>{_HIGH}|{_LOW})|.)", re.DOTALL)
"""What begins with a backslash in JSON, and whether it is half of a surrogate pair."""
_LOOPS: Final = ("event-loop-xml", "event-loop-json", "event-loop-regex")


class MappingError(Exception):
    """A configuration, or a content, is not what it should be; the text is a sentence."""


def configuration(xml: bytes, values: Mapping[str, str]) -> etree._Element:
    """Read a configuration, with values for its tokens.

    Raises:
        MappingError: it is no XML.
    """
    text = xml.decode("utf-8", "replace")
    text = TOKEN.sub(lambda match: values.get(match[1], match[0]), text)
    try:
        return parse(text, "the configuration")
    except ModelError as error:
        raise MappingError(str(error)) from None


def holder(root: etree._Element) -> etree._Element:
    """Return the element of a configuration that holds functions and loops."""
    for tag in ("event-loops", "function-context"):
        found = next(root.iter(tag), None)
        parent = None if found is None else found.getparent()
        if parent is not None:
            return parent
    return root


class Mapper:
    """Makes events of contents."""

    def __init__(self, publisher: etree._Element, window: Window) -> None:
        """Read what an element with functions and loops says.

        Raises:
            MappingError: it cannot be run; the text says why.
        """
        opcode = text_of(publisher.find("opcode")).strip("'\" ").lower()
        self._opcode = {"upsert": "P", "update": "U", "delete": "D"}.get(opcode, "I")
        try:
            project = read_project(_model(publisher, window), "the configuration")
        except ModelError as error:
            raise MappingError(str(error)) from None
        self._kernel = Kernel(project, published=("q/out",))
        self._number = 0

    def events(self, content: str, now: int) -> Sequence[Event]:
        """Return the events of one content.

        Raises:
            MappingError: it gives none; the text says why.
        """
        self._number += 1
        given = Event("I", "N", (self._number, _with_characters(content)))
        try:
            made = self._kernel.publish("q/in", given, now)
        except BadRecord as refusal:
            raise MappingError(str(refusal)) from None
        refusals = self._kernel.take_refusals()
        if refusals:
            raise MappingError(refusals[0][1])
        return [event._replace(opcode=self._opcode) for _, event in made]


def _with_characters(content: str) -> str:
    """Replace halves of surrogate pairs in JSON: with one, all of it would be no document."""
    if not content.lstrip().startswith(("{", "[")):
        return content
    return _ESCAPE.sub(lambda match: r"\ufffd" if match["half"] else match[0], content)


def _model(publisher: etree._Element, window: Window) -> bytes:
    project = etree.Element("project", {"name": "p", "index": "pi_EMPTY"})
    query = etree.SubElement(etree.SubElement(project, "contqueries"), "contquery", {"name": "q"})
    windows = etree.SubElement(query, "windows")
    source = etree.SubElement(windows, "window-source", {"name": "in", "insert-only": "true"})
    etree.SubElement(source, "schema-string").text = f"{_CONTENT}_id*:int64,{_CONTENT}:string"
    target = etree.SubElement(windows, "window-functional", {"name": "out"})
    fields = [f"{field.name}{'*' if field.key else ''}:{field.type}" for field in window.fields]
    etree.SubElement(target, "schema-string").text = ",".join(fields)
    for part in publisher:
        if part.tag in _PARTS:
            target.append(_of_field(copy.deepcopy(part)))
    edges = etree.SubElement(query, "edges")
    etree.SubElement(edges, "edge", {"source": "in", "target": "out"})
    return etree.tostring(project)


def _of_field(part: etree._Element) -> etree._Element:
    """Replace the content by the field that holds it, and what a loop has found by its name."""
    for element in part.iter():
        loop = next(element.iterancestors(*_LOOPS), None)
        if element.text:
            element.text = element.text.replace(f"#{_CONTENT}", f"${_CONTENT}")
        if element.text and loop is not None:
            element.text = element.text.replace("#_context", f"#{loop.get('name', '')}")
    return part
