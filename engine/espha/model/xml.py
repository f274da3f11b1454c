"""XML text to a tree that can be trusted: bounded, local, without a document type."""

from collections.abc import Iterator

from lxml import etree

from espha.model.problems import Findings, ModelError, Problem

MAX_BYTES = 2 * 1024 * 1024
"""A ConfigMap holds 1 MiB; nothing larger can come from a deployment."""

IGNORED = frozenset({"metadata", "description", "comment", "documentation", "notes"})
"""Elements that have no meaning for an engine, wherever they occur."""


def parse(xml: str | bytes, source: str) -> etree._Element:
    """Parse `xml` and return its root element.

    Raises:
        ModelError: too large, not text, not well-formed, or with a DOCTYPE.
    """
    data = _bytes(xml, source)
    if len(data) > MAX_BYTES:
        raise _refused(1, f"the model has {len(data)} bytes; at most {MAX_BYTES} are read", source)
    try:
        root = etree.fromstring(data, _parser(is_text=isinstance(xml, str)))
    except etree.XMLSyntaxError as error:
        raise _refused(error.lineno or 1, f"not well-formed XML: {error.msg}", source) from None
    # Entities are where XML becomes a program; without a DOCTYPE there are none to declare.
    if root.getroottree().docinfo.internalDTD is not None:
        raise _refused(1, "a DOCTYPE is not accepted; remove it", source)
    return root


def _bytes(xml: str | bytes, source: str) -> bytes:
    try:
        return xml.encode() if isinstance(xml, str) else xml
    except UnicodeEncodeError as error:
        reason = f"not text: {error.reason} at character {error.start}"
        raise _refused(1, reason, source) from None


def _parser(*, is_text: bool) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        # Text is UTF-8 by now, whatever its XML declaration says.
        encoding="utf-8" if is_text else None,
    )


def _refused(line: int, reason: str, source: str) -> ModelError:
    return ModelError([Problem(line, "xml", "", reason)], source)


def text_of(element: etree._Element | None) -> str:
    """All text below `element`, without surrounding blanks; empty when there is none."""
    return "" if element is None else "".join(str(part) for part in element.itertext()).strip()


def children(
    element: etree._Element, known: frozenset[str], findings: Findings
) -> Iterator[etree._Element]:
    """Yield the children whose tag is in `known`, refuse the others.

    An element that we do not know changes what the model computes, so it cannot be skipped.
    """
    for child in element:
        if child.tag in known:
            yield child
        elif child.tag not in IGNORED:
            allowed = ", ".join(sorted(known)) or "nothing"
            findings.refuse(child, f"not supported in <{element.tag}> (supported: {allowed})")


def only_child(element: etree._Element, tag: str, findings: Findings) -> etree._Element | None:
    """Return the child named `tag`; refuse a second one."""
    found = element.findall(tag)
    for extra in found[1:]:
        findings.refuse(extra, f"occurs twice in <{element.tag}>")
    return found[0] if found else None


def properties(element: etree._Element | None, findings: Findings) -> dict[str, str]:
    """Read `<properties><property name=…>value</property>…` below `element`."""
    result: dict[str, str] = {}
    if element is None:
        return result
    for block in children(element, frozenset({"properties"}), findings):
        for item in children(block, frozenset({"property"}), findings):
            name = item.get("name", "").strip()
            if not name:
                findings.refuse(item, "a property needs a name")
            elif name in result:
                findings.warn(item, f"property {name!r} is given twice; the last one counts")
            result[name] = text_of(item) or item.get("value", "")
    return result


def attributes(element: etree._Element, known: frozenset[str], findings: Findings) -> None:
    """Warn of attributes that have no effect here."""
    for name in element.attrib:
        if name not in known:
            findings.warn(element, f"attribute {str(name)!r} is not used")


def boolean(element: etree._Element, name: str, findings: Findings) -> bool:
    """Read a true/false attribute; absent is false."""
    value = element.get(name, "false").strip().lower()
    if value not in {"true", "false", "1", "0"}:
        findings.refuse(element, f"attribute {name!r} is {value!r}; use true or false")
    return value in {"true", "1"}
