"""A project with every window type."""

from pathlib import Path

from lxml import etree

PATH = Path(__file__).with_name("every-window.xml")
TEXT = PATH.read_text(encoding="utf-8")


def kinds_used() -> set[str]:
    """Names of the window types in the project."""
    tree = etree.fromstring(TEXT.encode())
    return {str(element.tag).removeprefix("window-") for element in tree.iterfind(".//windows/*")}
