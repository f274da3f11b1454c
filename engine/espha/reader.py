"""XML to a checked project."""

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Final, get_args

from lxml import etree

from espha.connectors.connectors import read_connectors, read_groups
from espha.model.files import home, put_in_files
from espha.model.problems import Findings, ModelError, line_of, meant
from espha.model.project import ConnectorGroup, Field, IdleWindow, Index, Project, Window
from espha.model.schema import copy_schema, given_fields
from espha.model.tokens import substitute
from espha.model.xml import IGNORED, attributes, boolean, children, parse
from espha.windows.shared.by_name import merged
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
from espha.wiring import Wiring, type_of

_NAME = re.compile(r"(?! )[^/\x00-\x1f\x7f]{1,200}(?<! )")

_INDEXES: Final = {name.lower(): name for name in get_args(Index)}
_PROJECT_ATTRIBUTES = frozenset(
    {
        "name",
        "index",
        "pubsub",
        "threads",
        "port",
        "heartbeat-interval",
        "luaroot",
        "use-tagged-token",
    }
)
_PROJECT_ELEMENTS = (
    frozenset({"contqueries", "properties", "project-connectors"}) | LIBRARY_ELEMENTS
)
_QUERY_ATTRIBUTES = frozenset(
    {"name", "index", "trace", "timing-threshold", "include-singletons", "use-tagged-token"}
)
_QUERY_ELEMENTS = frozenset({"windows", "edges"})
_NO_NAME: Final = "contquery"
"""What a query without a name is called, as in the client library of ESP."""

Elements = dict[str, etree._Element]


def read_project(
    xml: str | bytes,
    source: str = "model.xml",
    *,
    tokens: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    checking: bool = False,
    unnamed: str = "project",
) -> Project:
    """Read and check a model.

    Args:
        xml: the text of a `<project>`, or of an `<engine>` with one project.
        source: what to call it in messages.
        tokens: values for `@TOKEN@`, which win over the project's own properties; the files that
            the model names are below that of `@ESP_PROJECT_HOME@`.
        environment: values for tokens that have none otherwise.
        checking: the model is not going to run, so a token or a file may be missing.
        unnamed: the name of a project that has none.

    Raises:
        ModelError: with every problem found.
    """
    findings = Findings()
    element = _find_project(parse(xml, source), findings)
    project = None
    if element is not None:
        if not element.get("name", "").strip():
            element.set("name", unnamed)
        substitute(element, tokens or {}, findings, environment=environment, checking=checking)
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
        names = ", ".join(project.get("name", "?") for project in projects)
        reason = f"needs one <project>, has {len(projects)}"
        if names:
            reason += f" ({names}); give each a file of its own"
        findings.refuse(root, reason)
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
    given: str = element.get("index", "").strip() or inherited
    index: str | None = _INDEXES.get(given.lower())
    if index is None:
        known = ", ".join(_INDEXES.values())
        findings.refuse(element, f"index {given!r} is not one of: {known}")
        return inherited
    return index


class _Reader:
    """Reads one project; problems go to `findings`."""

    def __init__(self, project: etree._Element, findings: Findings) -> None:
        self._project = project
        self._findings = findings
        self._elements: Elements = {}
        self._indexes: dict[str, str] = {}
        self._wiring = Wiring(self._elements, findings)
        self._fields: dict[str, tuple[Field, ...]] = {}
        """Schemas by window, also of those that are refused for another reason."""
        self._library = Library()
        self._tagged: dict[str, bool] = {}

    def read(self) -> Project | None:
        """Return the project, or None when it has problems."""
        attributes(self._project, _PROJECT_ATTRIBUTES, self._findings)
        name = _check_name(self._project, self._findings)
        self._library = read_library(self._project, self._findings)
        self._read_queries(_index(self._project, "pi_RBTREE", self._findings))
        self._wiring.check_inputs()
        windows = self._read_windows()
        self._check_slots(windows)
        groups = read_groups(self._project, self._findings)
        self._check_groups(groups)
        if self._findings.problems:
            return None
        return Project(
            name=name,
            windows={path: windows[path] for path in self._elements},
            edges=tuple(self._wiring.edges),
            groups=groups,
            snippets=self._library.snippets,
            warnings=tuple(self._findings.warnings),
        )

    def _read_queries(self, inherited: str) -> None:
        names: set[str] = set()
        tagged = boolean(self._project, "use-tagged-token", self._findings)
        for block in self._parts(self._project, _PROJECT_ELEMENTS):
            if block.tag != "contqueries":
                continue
            for query in children(block, frozenset({"contquery"}), self._findings):
                attributes(query, _QUERY_ATTRIBUTES, self._findings)
                name = self._query_name(query, names)
                names.add(name)
                self._tagged[name] = tagged or boolean(query, "use-tagged-token", self._findings)
                self._read_query(query, name, _index(query, inherited, self._findings))
        if not any(type_of(element) == "source" for element in self._elements.values()):
            self._findings.warn(self._project, "the project has no source window")

    def _parts(self, element: etree._Element, known: frozenset[str]) -> list[etree._Element]:
        """Return the known parts of a project or query; others change no result by themselves."""
        for child in element:
            if child.tag not in known | IGNORED:
                self._findings.warn(child, f"not used in <{element.tag}>")
        return [child for child in element if child.tag in known]

    def _query_name(self, query: etree._Element, names: set[str]) -> str:
        if not query.get("name", "").strip():
            number = len(names) + 1
            return _NO_NAME if number == 1 else f"{_NO_NAME}_{number}"
        name = _check_name(query, self._findings)
        if name in names:
            self._findings.refuse(query, f"two queries are called {name!r}")
        return name

    def _read_query(self, query: etree._Element, name: str, inherited: str) -> None:
        blocks = self._parts(query, _QUERY_ELEMENTS)
        for block in blocks:
            if block.tag == "windows":
                for element in block:
                    self._note_window(element, name, inherited)
        self._copy_schemas(name)
        for block in blocks:
            if block.tag == "edges":
                self._wiring.read(block, name)

    def _copy_schemas(self, query: str) -> None:
        others = {
            path.partition("/")[2]: element
            for path, element in self._elements.items()
            if path.startswith(f"{query}/")
        }
        for element in others.values():
            copy_schema(element, others, self._findings)

    def _note_window(self, element: etree._Element, query: str, inherited: str) -> None:
        if element.tag in IGNORED:
            return
        path = f"{query}/{_check_name(element, self._findings)}"
        if path in self._elements:
            self._findings.refuse(element, "another window of this query has the same name")
            return
        self._elements[path] = element
        window_type = WINDOWS.get(type_of(element))
        if window_type is None:
            self._findings.refuse(element, _why_not(type_of(element)))
            return
        self._indexes[path] = _index(element, inherited, self._findings)
        attributes(element, COMMON_ATTRIBUTES | window_type.attributes, self._findings)
        known = COMMON_ELEMENTS | COMMON_REFUSED | window_type.elements | window_type.refused
        list(children(element, known, self._findings))

    def _read_windows(self) -> dict[str, Window]:
        """Read windows after those that feed them, because schemas come from there."""
        result: dict[str, Window] = {}
        for path in self._wiring.order():
            window = self._read_window(path) if path in self._indexes else None
            if window is not None:
                result[path] = window
            fields = window.fields if window else given_fields(self._elements[path])
            if fields or isinstance(window, IdleWindow):
                self._fields[path] = fields
        return result

    def _read_window(self, path: str) -> Window | None:
        """Read a window; None when it has problems, or nothing is known of what feeds it."""
        edges = self._wiring.into[path]
        if not edges and not self._wiring.enough(path):
            return self._idle(path)
        if not self._wiring.enough(path) or any(edge.source not in self._fields for edge in edges):
            return None
        feeds = tuple(
            Feed(edge.source, edge.role, edge.slot, self._fields[edge.source]) for edge in edges
        )
        if not all(feed.fields for feed in feeds):
            return self._idle(path)
        return self._running(path, feeds)

    def _idle(self, path: str) -> IdleWindow:
        """Return a window that no event can reach; what is in it does not matter."""
        fields = given_fields(self._elements[path])
        return IdleWindow(**self._common(path), type=type_of(self._elements[path]), fields=fields)

    def _common(self, path: str) -> dict[str, object]:
        """Return what all windows have, without their schema."""
        element, findings = self._elements[path], self._findings
        kind = type_of(element)
        return {
            "name": element.get("name", ""),
            "query": path.split("/", maxsplit=1)[0],
            "line": line_of(element),
            "index": self._indexes[path],
            "insert_only_output": boolean(element, "output-insert-only", findings),
            "connectors": read_connectors(element, kind, findings),
        }

    def _running(self, path: str, feeds: tuple[Feed, ...]) -> Window | None:
        element, findings = self._elements[path], self._findings
        window_type = WINDOWS[type_of(element)]
        if window_type.by_name:
            feeds = self._by_name(element, feeds)
        tagged = self._tagged[path.split("/", maxsplit=1)[0]]
        common = self._common(path)
        window = window_type.read(Reading(element, common, feeds, findings, self._library, tagged))
        if window is None:
            return None
        retention = read_retention(
            element, window.fields, window.index, findings, why_not=window_type.no_retention
        )
        splitter = read_splitter(element, window, findings, self._library)
        return window.model_copy(update={"retention": retention, "splitter": splitter})

    def _by_name(self, element: etree._Element, feeds: tuple[Feed, ...]) -> tuple[Feed, ...]:
        try:
            fields = merged([feed.fields for feed in feeds])
        except ValueError as error:
            self._findings.refuse(element, str(error))
            return feeds
        return tuple(feed._replace(fields=fields) for feed in feeds)

    def _check_slots(self, windows: Mapping[str, Window]) -> None:
        for edge in self._wiring.edges:
            window = windows.get(edge.source)
            if edge.slot is not None and window is not None and window.splitter is None:
                reason = f"an edge takes slot {edge.slot} of it, but it has no <splitter-expr>; "
                reason += "it takes all events"
                self._findings.warn(self._elements[edge.source], reason)

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
    return f"this window is not one of: {known}{meant(type_, WINDOWS)}"
