"""What the readers of all window types share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lxml import etree

from espha.model.problems import Findings
from espha.model.project import AnyWindow, Field

COMMON_ELEMENTS = frozenset({"connectors"})
COMMON_ATTRIBUTES = frozenset(
    {"name", "pubsub", "index", "collapse-updates", "output-insert-only", "produces-only-inserts"}
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One window while it is read.

    Attributes:
        element: its XML.
        common: what all windows have, as arguments of the window's class; no `fields` yet.
        feed: schema of the window that feeds it; empty for a source.
        findings: where problems go.
    """

    element: etree._Element
    common: dict[str, Any]
    feed: tuple[Field, ...]
    findings: Findings

    def refuse(self, reason: str) -> None:
        """Refuse the window."""
        self.findings.refuse(self.element, reason)


@dataclass(frozen=True, slots=True)
class Kind:
    """A window type.

    Attributes:
        name: the word after `window-`.
        elements: child elements that the type has beside the common ones.
        attributes: attributes that the type has beside the common ones.
        read: makes the window; None when it has problems, which it has then reported.
    """

    name: str
    read: Callable[[Reading], AnyWindow | None]
    elements: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
