"""A project with every window type, assembled from the example of each."""

from collections.abc import Collection
from functools import cache
from importlib.resources import files

from lxml import etree

from espha.windows.types import WINDOWS
from support.models import SUB, xml

_PARSER = etree.XMLParser(strip_cdata=False)
_LIMIT = '<properties><property name="LIMIT">2</property></properties>'


@cache
def example(name: str) -> etree._Element:
    """Return the example of a window type.

    Its `<windows>` are fed, by its `<edges>`, from those of other examples; most of them from `ev`,
    a source of the example of `source`.
    """
    return etree.fromstring((files(WINDOWS[name].package) / "example.xml").read_bytes(), _PARSER)


def project(without: Collection[str] = ()) -> str:
    """Return the project, without some window types that feed no others."""
    examples = [example(name) for name in WINDOWS if name not in without]
    windows, edges = (
        "".join(
            etree.tostring(part, encoding="unicode")
            for one in examples
            for part in one.iterfind(f"{block}/*")
        )
        for block in ("windows", "edges")
    )
    shared = "".join(
        etree.tostring(part, encoding="unicode")
        for one in examples
        for part in one.iterfind("project/*")
    )
    return xml(windows, edges, index="pi_HASH", before=_LIMIT + shared)


TEXT = project()


def published() -> str:
    """Return the project with a Kafka topic for what leaves each window but the sources."""
    tree = etree.fromstring(TEXT.encode())
    for window in tree.iterfind(".//windows/*"):
        if isinstance(window.tag, str) and window.tag != "window-source":
            window.append(etree.fromstring(SUB))
    return etree.tostring(tree, encoding="unicode")
