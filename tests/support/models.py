"""Models for tests, as short as a test wants them."""

from pathlib import Path

from espha.model import Project
from espha.reader import read_project

ROOT = Path(__file__).parents[2]
SAMPLE = (ROOT / "manifests/models/ha-project.xml").read_text(encoding="utf-8")
TRADES = (ROOT / "tests/unit/windows/filter-compute-copy.xml").read_text(encoding="utf-8")

SUB = (
    '<connectors><connector class="kafka" name="out"><properties>'
    '<property name="type">sub</property></properties></connector></connectors>'
)


def xml(windows: str, edges: str = "", *, index: str = "pi_EMPTY", before: str = "") -> str:
    """Return a project `p` with the query `q`."""
    return (
        f'<project name="p" index="{index}">{before}<contqueries><contquery name="q">\n'
        f"<windows>\n{windows}\n</windows>\n<edges>{edges}</edges>\n"
        "</contquery></contqueries></project>"
    )


def source(schema: str, attributes: str = "", *, name: str = "in", body: str = "") -> str:
    """Return a source window."""
    return (
        f'<window-source name="{name}" {attributes}>'
        f"<schema-string>{schema}</schema-string>{body}</window-source>\n"
    )


def behind(schema: str, window: str, *, attributes: str = "", index: str = "pi_EMPTY") -> Project:
    """Return the project with a source `in` of this schema and `window`, called `out`, behind."""
    edge = '<edge source="in" target="out"/>'
    return read_project(xml(source(schema, attributes) + window, edge, index=index))
