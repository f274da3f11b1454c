"""The edges of a project: which window leads into which, and in which order they are read."""

import re
from collections import defaultdict
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from lxml import etree

from espha.model.problems import Findings, line_of, meant
from espha.model.project import Edge
from espha.model.xml import attributes, children
from espha.windows.types import WINDOWS

MAX_EDGES = 5_000
"""Lists of sources and targets multiply, so a short text could make any number of edges."""

ALL_SLOTS = -1
"""An edge with this slot takes all events, like one without."""

_SLOT = re.compile(r"-1|[0-9]{1,6}")
_EDGE_ATTRIBUTES = frozenset({"source", "target", "role", "slot"})


def type_of(element: etree._Element) -> str:
    """Return the type of a window: the word after `window-`."""
    return str(element.tag).removeprefix("window-")


class Wiring:
    """The edges of a project while it is read.

    Attributes:
        edges: all of them, in the order of the XML.
        into: those that lead into a window, by its "query/window".
    """

    def __init__(self, elements: Mapping[str, etree._Element], findings: Findings) -> None:
        """Start without edges.

        Args:
            elements: the windows by "query/window"; more can come until edges are read.
            findings: where problems go.
        """
        self._elements = elements
        self._findings = findings
        self.edges: list[Edge] = []
        self.into: defaultdict[str, list[Edge]] = defaultdict(list)

    def read(self, block: etree._Element, query: str) -> None:
        """Read the `<edges>` of a query."""
        for element in children(block, frozenset({"edge"}), self._findings):
            self._read_edge(element, query)

    def enough(self, path: str) -> bool:
        """Say whether the number of edges into a window is one that its type takes."""
        least, most = WINDOWS[type_of(self._elements[path])].inputs
        count = len(self.into[path])
        return least <= count and (most is None or count <= most)

    def check_inputs(self) -> None:
        """Refuse windows with another number of edges than their type takes."""
        for path, element in self._elements.items():
            count = len(self.into[path])
            if type_of(element) not in WINDOWS or self.enough(path):
                continue
            if count == 0:
                self._findings.warn(element, "no edge leads into this window; no event comes here")
            else:
                least = WINDOWS[type_of(element)].inputs[0]
                self._findings.refuse(element, f"{count} edges lead into it; it takes {least}")

    def order(self) -> list[str]:
        """Return the windows, each after those that lead into it; empty if there is a cycle."""
        before = {path: [edge.source for edge in self.into[path]] for path in self._elements}
        try:
            return list(TopologicalSorter(before).static_order())
        except CycleError as error:
            cycle: list[str] = error.args[1]
            self._findings.refuse(self._elements[cycle[0]], f"a cycle: {' -> '.join(cycle)}")
            return []

    def _read_edge(self, element: etree._Element, query: str) -> None:
        attributes(element, _EDGE_ATTRIBUTES, self._findings)
        sources, targets = (
            self._listed(element.get(end, ""), query) for end in ("source", "target")
        )
        if not sources or not targets:
            self._findings.refuse(element, "needs a source and a target")
        if len(self.edges) + len(sources) * len(targets) > MAX_EDGES:
            self._findings.refuse(element, f"more than {MAX_EDGES} edges")
            return
        for name in (*sources, *targets):
            if f"{query}/{name}" not in self._elements:
                self._refuse_unknown(element, name, query)
        slot = self._slot(element)
        for source in sources:
            for target in targets:
                self._add(element, f"{query}/{source}", f"{query}/{target}", slot)

    def _refuse_unknown(self, element: etree._Element, name: str, query: str) -> None:
        known = [path.partition("/")[2] for path in self._elements if path.startswith(f"{query}/")]
        reason = f"there is no window {name!r} in query {query!r}{meant(name, known)}"
        self._findings.refuse(element, reason)

    def _listed(self, text: str, query: str) -> list[str]:
        """Split a list of windows; a name with blanks is the only one."""
        whole = text.strip()
        if f"{query}/{whole}" in self._elements:
            return [whole]
        return whole.replace(",", " ").split()

    def _add(self, element: etree._Element, source: str, target: str, slot: int | None) -> None:
        if source not in self._elements or target not in self._elements:
            return
        kind = type_of(self._elements[target])
        if kind == "source":
            self._findings.refuse(element, f"{target} is a source window; no edge leads into it")
            return
        role = self._role(element, target, kind)
        edge = Edge(source=source, target=target, line=line_of(element), role=role, slot=slot)
        same = (edge.source, edge.role, edge.slot)
        # By its places, the two inputs of a window may be one and the same window.
        places = kind in WINDOWS and bool(WINDOWS[kind].roles) and role == "data"
        others = [(other.source, other.role, other.slot) for other in self.into[target]]
        if same in others and not places:
            self._findings.warn(element, f"the edge from {source} to {target} occurs twice")
            return
        self.into[target].append(edge)
        self.edges.append(edge)

    def _slot(self, element: etree._Element) -> int | None:
        text = element.get("slot", "").strip()
        if not text:
            return None
        if _SLOT.fullmatch(text):
            return None if int(text) == ALL_SLOTS else int(text)
        self._findings.refuse(element, f"slot {text!r} is not a whole number from -1")
        return None

    def _role(self, element: etree._Element, target: str, kind: str) -> str:
        """Return the role of an edge; one that its target has no use for is that of data."""
        role = element.get("role", "").strip() or "data"
        window_type = WINDOWS.get(kind)
        if window_type is None or role == "data" or role in window_type.roles:
            return role
        roles = ", ".join(sorted({"data", *window_type.roles}))
        reason = f"role {role!r} of the edge into {target} is not one of: {roles}"
        if window_type.roles:
            self._findings.refuse(element, reason)
        else:
            self._findings.warn(element, reason)
        return "data"
