"""Union windows: one stream of many."""

from typing import Literal

from espha.model.project import Window
from espha.model.xml import boolean
from espha.windows.shared.spec import Feed, Reading, WindowType


class UnionWindow(Window):
    """Brings inputs of one schema together.

    Attributes:
        strict: an insert of a row that exists is refused; otherwise it updates the row.
    """

    type: Literal["union"] = "union"
    strict: bool = True


def _read(reading: Reading) -> UnionWindow | None:
    element, findings = reading.element, reading.findings
    before = len(findings.problems)
    strict = element.get("strict") is None or boolean(element, "strict", findings)
    for feed in reading.feeds[1:]:
        _check_schema(reading, feed)
    if len(findings.problems) > before:
        return None
    return UnionWindow(**reading.common, fields=reading.feed, strict=strict)


def _check_schema(reading: Reading, feed: Feed) -> None:
    first = reading.feeds[0]
    if feed.fields == first.fields:
        return
    pairs = zip(first.fields, feed.fields, strict=False)
    differing = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if differing is None:
        counts = f"{len(first.fields)} and {len(feed.fields)} fields"
        reading.refuse(f"{first.path} and {feed.path} have different schemas: {counts}")
        return
    one, two = (f"{field.name}{'*' if field.key else ''}:{field.type}" for field in differing)
    reading.refuse(f"{first.path} and {feed.path} have different schemas: {one} and {two}")


WINDOW = WindowType(
    "union",
    _read,
    "merging",
    attributes=frozenset({"strict"}),
    inputs=(1, None),
)
