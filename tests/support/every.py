"""A project with every window type."""

from pathlib import Path

from lxml import etree

from support.models import SUB

PATH = Path(__file__).with_name("every-window.xml")
TEXT = PATH.read_text(encoding="utf-8")


def kinds_used() -> set[str]:
    """Names of the window types in the project."""
    tree = etree.fromstring(TEXT.encode())
    return {str(element.tag).removeprefix("window-") for element in tree.iterfind(".//windows/*")}


def published() -> str:
    """Return the project with a Kafka topic for what leaves each window that is no source."""
    tree = etree.fromstring(TEXT.encode())
    for window in tree.iterfind(".//windows/*"):
        if isinstance(window.tag, str) and window.tag != "window-source":
            window.append(etree.fromstring(SUB))
    return etree.tostring(tree, encoding="unicode")
