"""XML to a checked project."""

import re
from collections import defaultdict
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import get_args

from lxml import etree

from espha.connectors.connectors import read_connectors, read_groups
from espha.model.files import home, put_in_files
from espha.model.problems import Findings, ModelError, line_of
from espha.model.project import ConnectorGroup, Edge, Index, Project, Window
from espha.model.tokens import substitute
from espha.model.xml import IGNORED, attributes, boolean, children, parse
from espha.windows.shared.library import LIBRARY_ELEMENTS, Library, read_library
from espha.windows.shared.retention_spec import read_retention
from espha.windows.shared.spec import (
    COMMON_ATTRIBUTES,
    COMMON_ELEMENTS,
    COMMON_REFUSED,
    Feed,
    Reading,
)
from espha.windows.shared.splitter_spec import read_splitter
from espha.windows.types import REFUSED_WINDOWS, WINDOWS

_NAME = re.compile(r"(?! )[^/\x00-\x1f\x7f]{1,200}(?<! )")
_SLOT = re.compile(r"-1|[0-9]{1,6}")
ALL_SLOTS = -1
"""An edge with this slot takes all events, like one without."""

_INDEXES = get_args(Index)
_PROJECT_ATTRIBUTES = frozenset(
    {"name", "index", "pubsub", "threads", "port", "heartbeat-interval", "use-tagged-token"}
)
_PROJECT_ELEMENTS = (
    frozenset({"contqueries", "properties", "project-connectors"}) | LIBRARY_ELEMENTS
)
_QUERY_ATTRIBUTES = frozenset({"name", "index", "trace", "timing-threshold"})
MAX_EDGES = 5_000
"""Lists of sources and targets multiply, so a short text could make any number of edges."""

_EDGE_ATTRIBUTES = frozenset({"source", "target", "role", "slot"})

Elements = dict[str, etree._Element]


def read_project(
    xml: str | bytes,
    source: str = "model.xml",
    *,
    tokens: Mapping[str, str] | None = None,
    checking: bool = False,
) -> Project:
    """Read and check a model.

    Args:
        xml: the text of a `<project>`, or of an `<engine>` with one project.
        source: what to call it in messages.
        tokens: values for `@TOKEN@`, which win over the project's own properties; the files that
            the model names are below that of `@ESP_PROJECT_HOME@`.
        checking: the model is not going to run, so a token or a file may be missing.

    Raises:
        ModelError: with every problem found.
    """
    findings = Findings()
    element = _find_project(parse(xml, source), findings)
    project = None
    if element is not None:
        substitute(element, tokens or {}, findings, checking=checking)
        put_in_files(element, home(tokens), findings, checking=checking)
        project = _Reader(element, findings).read()
    if findings.problems or project is None:
        raise ModelError(sorted(findings.problems, key=lambda problem: problem.line), source)
    return project


def _find_project(root: etree._Element, findings: Findings) -> etree._Element | None:
    if root.tag == "project":
        return root
    projects = root.findall("projects/project") + root.findall("project")
    projects = projects if root.tag == "engine" else []
    if len(projects) != 1:
        findings.refuse(root, f"needs one <project>, has {len(projects)}")
        return None
    return projects[0]


def _check_name(element: etree._Element, findings: Findings) -> str:
    """Read a name; slashes separate names in paths."""
    name = element.get("name", "")
    if not _NAME.fullmatch(name):
        reason = f"{name!r} is not a name: use 1 to 200 characters, no slash, no blank at the ends"
        findings.refuse(element, reason)
    return name


def _index(element: etree._Element, inherited: str, findings: Findings) -> str:
    index = element.get("index", inherited)
    if index not in _INDEXES:
        findings.refuse(element, f"index {index!r} is not one of: {', '.join(_INDEXES)}")
        return inherited
    return index


class _Reader:
    """Reads one project; problems go to `findings`."""

    def __init__(self, project: etree._Element, findings: Findings) -> None:
        self._project = project
        self._findings = findings
        self._elements: Elements = {}
        self._indexes: dict[str, str] = {}
        self._edges: list[Edge] = []
        self._feeds: dict[str, list[Edge]] = defaultdict(list)
        self._library = Library()

    def read(self) -> Project | None:
        """Return the project, or None when it has problems."""
        attributes(self._project, _PROJECT_ATTRIBUTES, self._findings)
        name = _check_name(self._project, self._findings)
        self._library = read_library(self._project, self._findings)
        self._read_queries(_index(self._project, "pi_RBTREE", self._findings))
        self._check_inputs()
        windows = self._read_windows()
        self._check_slots(windows)
        groups = read_groups(self._project, self._findings)
        self._check_groups(groups)
        if self._findings.problems:
            return None
        return Project(
            name=name,
            windows={path: windows[path] for path in self._elements},
            edges=tuple(self._edges),
            groups=groups,
            warnings=tuple(self._findings.warnings),
        )

    def _read_queries(self, inherited: str) -> None:
        names: set[str] = set()
        for block in children(self._project, _PROJECT_ELEMENTS, self._findings):
            if block.tag != "contqueries":
                continue
            for query in children(block, frozenset({"contquery"}), self._findings):
                attributes(query, _QUERY_ATTRIBUTES, self._findings)
                name = _check_name(query, self._findings)
                if name in names:
                    self._findings.refuse(query, f"two queries are called {name!r}")
                names.add(name)
                self._read_query(query, name, _index(query, inherited, self._findings))
        self._check_sources()

    def _read_query(self, query: etree._Element, name: str, inherited: str) -> None:
        known = frozenset({"windows", "edges"})
        blocks = list(children(query, known, self._findings))
        for block in blocks:
            if block.tag == "windows":
                for element in block:
                    self._note_window(element, name, inherited)
        for block in blocks:
            if block.tag == "edges":
                for element in children(block, frozenset({"edge"}), self._findings):
                    self._read_edge(element, name)

    def _note_window(self, element: etree._Element, query: str, inherited: str) -> None:
        if element.tag in IGNORED:
            return
        path = f"{query}/{_check_name(element, self._findings)}"
        if path in self._elements:
            self._findings.refuse(element, "another window of this query has the same name")
            return
        self._elements[path] = element
        window_type = WINDOWS.get(_type(element))
        if window_type is None:
            self._findings.refuse(element, _why_not(_type(element)))
            return
        self._indexes[path] = _index(element, inherited, self._findings)
        attributes(element, COMMON_ATTRIBUTES | window_type.attributes, self._findings)
        known = COMMON_ELEMENTS | COMMON_REFUSED | window_type.elements | window_type.refused
        list(children(element, known, self._findings))

    def _read_edge(self, element: etree._Element, query: str) -> None:
        attributes(element, _EDGE_ATTRIBUTES, self._findings)
        sources, targets = (
            self._listed(element.get(end, ""), query) for end in ("source", "target")
        )
        if not sources or not targets:
            self._findings.refuse(element, "needs a source and a target")
        if len(self._edges) + len(sources) * len(targets) > MAX_EDGES:
            self._findings.refuse(element, f"more than {MAX_EDGES} edges")
            return
        for name in (*sources, *targets):
            if f"{query}/{name}" not in self._elements:
                self._findings.refuse(element, f"there is no window {name!r} in query {query!r}")
        for source in sources:
            for target in targets:
                self._add_edge(element, f"{query}/{source}", f"{query}/{target}")

    def _listed(self, text: str, query: str) -> list[str]:
        """Split a list of windows; a name with blanks is the only one."""
        whole = text.strip()
        return [whole] if f"{query}/{whole}" in self._elements else whole.split()

    def _add_edge(self, element: etree._Element, source: str, target: str) -> None:
        if source not in self._elements or target not in self._elements:
            return
        edge = Edge(
            source=source,
            target=target,
            line=line_of(element),
            role=element.get("role", "data"),
            slot=self._slot(element),
        )
        same = (edge.source, edge.role, edge.slot)
        if same in [(other.source, other.role, other.slot) for other in self._feeds[target]]:
            self._findings.refuse(element, f"the edge from {source} to {target} occurs twice")
            return
        if _type(self._elements[target]) == "source":
            self._findings.refuse(element, f"{target} is a source window; no edge leads into it")
            return
        self._check_role(element, edge)
        self._feeds[target].append(edge)
        self._edges.append(edge)

    def _slot(self, element: etree._Element) -> int | None:
        text = element.get("slot")
        if text is None:
            return None
        if _SLOT.fullmatch(text.strip()):
            return None if int(text) == ALL_SLOTS else int(text)
        self._findings.refuse(element, f"slot {text!r} is not a whole number from -1")
        return None

    def _check_role(self, element: etree._Element, edge: Edge) -> None:
        window_type = WINDOWS.get(_type(self._elements[edge.target]))
        if window_type is None or edge.role == "data" or edge.role in window_type.roles:
            return
        roles = ", ".join(sorted({"data", *window_type.roles}))
        reason = f"role {edge.role!r} of the edge into {edge.target} is not one of: {roles}"
        self._findings.refuse(element, reason)

    def _check_sources(self) -> None:
        if not any(_type(element) == "source" for element in self._elements.values()):
            self._findings.refuse(self._project, "the project has no source window")

    def _check_inputs(self) -> None:
        for path, element in self._elements.items():
            count = len(self._feeds[path])
            if _type(element) not in WINDOWS:
                continue
            if self._enough_inputs(path):
                continue
            if count == 0:
                self._findings.refuse(element, "no edge leads into this window")
            else:
                least = WINDOWS[_type(element)].inputs[0]
                self._findings.refuse(element, f"{count} edges lead into it; it takes {least}")

    def _enough_inputs(self, path: str) -> bool:
        least, most = WINDOWS[_type(self._elements[path])].inputs
        count = len(self._feeds[path])
        return least <= count and (most is None or count <= most)

    def _read_windows(self) -> dict[str, Window]:
        """Read windows after those that feed them, because schemas come from there."""
        result: dict[str, Window] = {}
        for path in self._order():
            feeding = self._feeds[path]
            # What feeds it has problems of its own, or is missing: reported already.
            ready = all(edge.source in result for edge in feeding)
            if path in self._indexes and ready and self._enough_inputs(path):
                feeds = tuple(
                    Feed(edge.source, edge.role, edge.slot, result[edge.source].fields)
                    for edge in feeding
                )
                window = self._read_window(path, feeds)
                if window is not None:
                    result[path] = window
        return result

    def _order(self) -> list[str]:
        try:
            return list(
                TopologicalSorter(
                    {path: [edge.source for edge in self._feeds[path]] for path in self._elements}
                ).static_order()
            )
        except CycleError as error:
            cycle: list[str] = error.args[1]
            self._findings.refuse(self._elements[cycle[0]], f"a cycle: {' -> '.join(cycle)}")
            return []

    def _read_window(self, path: str, feeds: tuple[Feed, ...]) -> Window | None:
        element, findings = self._elements[path], self._findings
        window_type = WINDOWS[_type(element)]
        common = {
            "name": element.get("name", ""),
            "query": path.split("/", maxsplit=1)[0],
            "line": line_of(element),
            "index": self._indexes[path],
            "collapse_updates": boolean(element, "collapse-updates", findings),
            "insert_only_output": boolean(element, "output-insert-only", findings),
            "connectors": read_connectors(element, window_type.name, findings),
        }
        window = window_type.read(Reading(element, common, feeds, findings, self._library))
        if window is None:
            return None
        retention = read_retention(
            element, window.fields, window.index, findings, why_not=window_type.no_retention
        )
        splitter = read_splitter(element, window, findings)
        return window.model_copy(update={"retention": retention, "splitter": splitter})

    def _check_slots(self, windows: Mapping[str, Window]) -> None:
        for edge in self._edges:
            window = windows.get(edge.source)
            if edge.slot is not None and window is not None and window.splitter is None:
                reason = f"an edge takes slot {edge.slot} of it, but it has no <splitter-expr>"
                self._findings.refuse(self._elements[edge.source], reason)

    def _check_groups(self, groups: tuple[ConnectorGroup, ...]) -> None:
        there = {
            f"{path}/{connector.get('name', '')}"
            for path, element in self._elements.items()
            for connector in element.findall("connectors/connector")
        }
        for element in self._project.findall(
            "project-connectors/connector-groups/connector-group/connector-entry"
        ):
            name = element.get("connector", "")
            if name not in there:
                self._findings.refuse(element, f"there is no connector {name!r}")
        try:
            list(TopologicalSorter({group.name: group.after for group in groups}).static_order())
        except CycleError as error:
            shown = " -> ".join(error.args[1])
            self._findings.refuse(self._project, f"connector groups wait for each other: {shown}")


def _why_not(type_: str) -> str:
    if type_ in REFUSED_WINDOWS:
        return f"this window is not supported: {REFUSED_WINDOWS[type_]}"
    known = ", ".join(f"window-{name}" for name in WINDOWS)
    return f"this window is not one of: {known}"


def _type(element: etree._Element) -> str:
    return str(element.tag).removeprefix("window-")
