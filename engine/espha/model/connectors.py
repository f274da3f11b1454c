"""Connectors of a window."""

import re
from typing import Literal, cast

from lxml import etree

from espha.model.problems import Findings, line_of
from espha.model.project import Connector
from espha.model.xml import attributes, children, properties

TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
"""What Kafka takes as the name of a topic."""

_KAFKA_TYPES = frozenset({"csv", "json", "binary"})
_PARTITION_ZERO = frozenset({"", "0"})


def read_connectors(window: etree._Element, kind: str, findings: Findings) -> tuple[Connector, ...]:
    """Read the connectors of a window, in document order; those with problems are left out."""
    result: list[Connector] = []
    for block in window.findall("connectors"):
        for element in children(block, frozenset({"connector"}), findings):
            connector = _read(element, kind, findings)
            if connector is not None:
                _check_double(element, connector, result, findings)
                result.append(connector)
    return tuple(result)


def _read(element: etree._Element, kind: str, findings: Findings) -> Connector | None:
    attributes(element, frozenset({"name", "class", "active", "type"}), findings)
    before = len(findings.problems)
    values = properties(element, findings)
    class_ = element.get("class", "")
    direction = values.get("type") or element.get("type", "")
    if not class_:
        findings.refuse(element, "a connector needs a class")
    if direction not in {"pub", "sub"}:
        findings.refuse(element, f"property 'type' is {direction!r}; use pub or sub")
    elif direction == "pub" and kind != "source":
        findings.refuse(element, "only a source window takes events from a pub connector")
    if class_ == "kafka":
        _check_kafka(element, values, findings)
    elif class_:
        findings.warn(element, f"connector class {class_!r} is not run; use an adapter")
    if len(findings.problems) > before:
        return None
    return Connector(
        name=element.get("name", ""),
        class_=class_,
        type=cast(Literal["pub", "sub"], direction),
        properties=values,
        line=line_of(element),
    )


def _check_kafka(element: etree._Element, values: dict[str, str], findings: Findings) -> None:
    topic = values.get("kafkatopic")
    if topic is not None and not TOPIC.fullmatch(topic):
        findings.refuse(element, f"kafkatopic {topic!r} is no topic: letters, digits, . _ and -")
    prefix = values.get("urlhostport")
    if prefix is not None and not TOPIC.fullmatch(prefix.replace(":", "_")):
        findings.refuse(element, f"urlhostport {prefix!r} is no prefix of topic names")
    kind = values.get("kafkatype", "csv")
    if kind not in _KAFKA_TYPES:
        findings.refuse(element, f"kafkatype {kind!r} is not supported; use csv or json")
    if kind == "binary":
        findings.warn(element, "kafkatype binary is SAS's own format; records are CSV")
    if values.get("kafkapartition", "") not in _PARTITION_ZERO:
        findings.refuse(element, "topics have one partition; kafkapartition can only be 0")


def _check_double(
    element: etree._Element, new: Connector, others: list[Connector], findings: Findings
) -> None:
    for other in others:
        if new.name and new.name == other.name:
            findings.refuse(element, f"connector {new.name!r} stands twice in the window")
        if new.class_ == other.class_ == "kafka" and new.type == other.type:
            findings.refuse(element, f"a window has one Kafka connector of type {new.type}")
