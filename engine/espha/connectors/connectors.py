"""Connectors of a window, and the groups in which they start."""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final, Literal, cast

from lxml import etree

from espha.connectors.commands import adapter_properties
from espha.connectors.files import (
    BINARY,
    SOURCE_PROPERTIES,
    TARGET_PROPERTIES,
    file_source,
    file_target,
    layout_of,
    own_format,
    precision_of,
)
from espha.connectors.timers import TIMER_PROPERTIES, timer
from espha.model.problems import Findings, line_of
from espha.model.project import Connector, ConnectorGroup, ConnectorState
from espha.model.tokens import TOKEN
from espha.model.xml import attributes, children, properties, text_of
from espha.records.layout import FILE_FORMATS

TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
"""What Kafka takes as the name of a topic."""

STATES: Final = ("started", "running", "finished", "stopped")
"""What a group can wait for."""

OUTSIDE: Final = frozenset({"url", "websocket", "db", "project"})
"""Classes of connectors that are run offline, and say there what they lack."""

SCRIPTS: Final = frozenset({"lua", "python"})
"""Classes of connectors that are scripts."""

_DIRECTIONS: Final = {
    "pub": "pub", "publish": "pub", "publisher": "pub",
    "sub": "sub", "subscribe": "sub", "subscriber": "sub",
}  # fmt: skip
_ANYWHERE = frozenset({"type", "active"})


def read_connectors(window: etree._Element, kind: str, findings: Findings) -> tuple[Connector, ...]:
    """Read the active connectors of a window, in document order; without those with problems."""
    result: list[Connector] = []
    for block in window.findall("connectors"):
        for element in children(block, frozenset({"connector"}), findings):
            connector = _read(element, kind, findings)
            if connector is None:
                continue
            if connector.name and connector.name in [other.name for other in result]:
                findings.refuse(element, f"connector {connector.name!r} stands twice in the window")
            result.append(connector)
    return tuple(result)


def _read(element: etree._Element, kind: str, findings: Findings) -> Connector | None:
    attributes(element, frozenset({"name", "class", "active", "type"}), findings)
    before = len(findings.problems)
    if not is_active(element):
        return None
    values = properties(element, findings)
    _default_date_format(element, values)
    class_ = element.get("class", "").strip().lower()
    if not class_:
        findings.refuse(element, "a connector needs a class")
    direction = _direction(element, values, kind, findings)
    if len(findings.problems) == before:
        _check_properties(element, class_, direction, values, findings)
    if len(findings.problems) > before:
        return None
    return Connector(
        name=element.get("name", ""),
        class_=class_,
        type=cast(Literal["pub", "sub"], direction),
        properties=values,
        line=line_of(element),
    )


def is_active(element: etree._Element) -> bool:
    """Say whether a connector takes part; of one that does not, nothing else is read."""
    found = [item for item in element.iter("property") if item.get("name", "").strip() == "active"]
    text = text_of(found[-1]) if found else element.get("active", "true")
    return text.strip().lower() not in {"false", "0", "no"}


def _default_date_format(element: etree._Element, values: dict[str, str]) -> None:
    """Let connectors without a format of dates have that of the project."""
    project = next(element.iterancestors("project"), None)
    found = "" if project is None else project.get("date-format", "")
    if found and not values.get("dateformat", "").strip():
        values["dateformat"] = found


def _direction(
    element: etree._Element, values: Mapping[str, str], kind: str, findings: Findings
) -> str:
    """Say whether events enter or leave by the connector; older projects leave the type out."""
    found = (values.get("type") or element.get("type") or "").strip()
    direction = _DIRECTIONS.get(found.lower()) if found else "pub" if kind == "source" else "sub"
    if direction is None:
        findings.refuse(element, f"property 'type' is {found!r}; use pub or sub")
    elif direction == "pub" and kind != "source":
        findings.refuse(element, "only a source window takes events from a pub connector")
    return direction or ""


def _check_properties(
    element: etree._Element,
    class_: str,
    direction: str,
    values: Mapping[str, str],
    findings: Findings,
) -> None:
    if class_ == "kafka":
        _check_kafka(element, direction, values, findings)
    elif class_ == "fs":
        _check_fs(element, direction, values, findings)
    elif class_ == "timer":
        _check_timer(element, direction, values, findings)
    elif class_ == "adapter":
        _check_adapter(element, direction, values, findings)
    elif class_ in OUTSIDE:
        return
    elif class_ in SCRIPTS:
        _check_script(element, class_, direction, values, findings)
    else:
        findings.warn(element, f"connector class {class_!r} is not run; use an adapter")


def _check_kafka(
    element: etree._Element, direction: str, values: Mapping[str, str], findings: Findings
) -> None:
    """Topics and formats matter to a deployment only: `espha.connectors.topics` refuses them."""
    kind = values.get("kafkatype", "csv")
    why = own_format(kind)
    if why:
        findings.warn(element, f"kafkatype {kind!r} cannot be deployed: {why}")
    elif kind == "binary":
        findings.warn(element, BINARY)
    if values.get("kafkapartition", "").strip() not in {"", "0"}:
        findings.warn(element, "topics have one partition; kafkapartition is taken as 0")
    _check_values(element, layout_of if direction == "pub" else precision_of, values, findings)


def _check_values(
    element: etree._Element,
    read: Callable[[Mapping[str, str]], object],
    values: Mapping[str, str],
    findings: Findings,
) -> None:
    """Refuse properties that `read` refuses; open tokens wait for their values."""
    if not open_tokens(values):
        try:
            read(values)
        except ValueError as error:
            findings.refuse(element, str(error))


def _check_fs(
    element: etree._Element, direction: str, values: Mapping[str, str], findings: Findings
) -> None:
    kind = values.get("fstype", "").strip().lower()
    if kind and kind not in FILE_FORMATS and not TOKEN.search(kind):
        findings.warn(element, f"fstype {kind!r} is not run; use {', '.join(FILE_FORMATS)}")
        return
    known = SOURCE_PROPERTIES if direction == "pub" else TARGET_PROPERTIES
    _warn_of_others(element, values, known, findings)
    _check_values(element, file_source if direction == "pub" else file_target, values, findings)


def _check_timer(
    element: etree._Element, direction: str, values: Mapping[str, str], findings: Findings
) -> None:
    if direction != "pub":
        findings.refuse(element, "a timer only publishes; use type pub")
        return
    _warn_of_others(element, values, TIMER_PROPERTIES, findings)
    if not open_tokens(values):
        try:
            timer(values)
        except ValueError as error:
            findings.refuse(element, str(error))


def _check_script(
    element: etree._Element,
    class_: str,
    direction: str,
    values: Mapping[str, str],
    findings: Findings,
) -> None:
    if direction != "pub":
        findings.warn(element, f"a connector of class {class_} is not run with type sub")
    elif not values.get("code", "").strip():
        findings.warn(element, "property 'code' is missing: the script; it is not run")


def _check_adapter(
    element: etree._Element, direction: str, values: Mapping[str, str], findings: Findings
) -> None:
    try:
        mapped = adapter_properties(values.get("command", ""))
        if not open_tokens(mapped):
            file_source(mapped) if direction == "pub" else file_target(mapped)
    except ValueError as error:
        findings.warn(element, f"this adapter is not run: {error}")


def _warn_of_others(
    element: etree._Element, values: Mapping[str, str], known: frozenset[str], findings: Findings
) -> None:
    for name in values:
        if name not in known and name not in _ANYWHERE:
            findings.warn(element, f"property {name!r} is not used")


def open_tokens(values: Mapping[str, str]) -> list[str]:
    """Return the tokens without a value that are left in properties, in order."""
    found = (match[1] for text in values.values() for match in TOKEN.finditer(text))
    return list(dict.fromkeys(name for name in found if name.isupper()))


def read_groups(project: etree._Element, findings: Findings) -> tuple[ConnectorGroup, ...]:
    """Read `<project-connectors>`: groups of connectors, and which waits for which.

    Without `<edges>` each group waits for the one before it.
    """
    groups: list[ConnectorGroup] = []
    elements: list[etree._Element] = []
    edges: list[etree._Element] = []
    for block in project.findall("project-connectors"):
        known = frozenset({"connector-groups", "edges"})
        for part in children(block, known, findings):
            tag = "edge" if part.tag == "edges" else "connector-group"
            found = list(children(part, frozenset({tag}), findings))
            edges += found if tag == "edge" else []
            elements += found if tag == "connector-group" else []
    after = _waits(elements, edges, findings)
    for element in elements:
        name = element.get("name", "")
        if name in [group.name for group in groups]:
            findings.refuse(element, f"two connector groups are called {name!r}")
        entries = _entries(element, findings)
        groups.append(ConnectorGroup(name=name, entries=entries, after=tuple(after[name])))
    return tuple(groups)


def _entries(group: etree._Element, findings: Findings) -> tuple[tuple[str, ConnectorState], ...]:
    result = []
    for element in children(group, frozenset({"connector-entry"}), findings):
        state = element.get("state", "running").strip().lower()
        if state not in STATES:
            findings.refuse(element, f"state {state!r} is not known; use {', '.join(STATES)}")
            continue
        result.append((element.get("connector", ""), cast(ConnectorState, state)))
    return tuple(result)


def _waits(
    groups: list[etree._Element], edges: list[etree._Element], findings: Findings
) -> dict[str, list[str]]:
    """Say for each group for which others it waits."""
    names = [group.get("name", "") for group in groups]
    after: dict[str, list[str]] = {name: [] for name in names}
    if not edges:
        for before, name in pairwise(names):
            after[name].append(before)
    for edge in edges:
        sources, targets = (edge.get(end, "").split() for end in ("source", "target"))
        for name in [*sources, *targets]:
            if name not in after:
                findings.refuse(edge, f"there is no connector group {name!r}")
        for target in targets:
            if target in after:
                after[target] += [source for source in sources if source in after]
    return after
