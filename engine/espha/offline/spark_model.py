"""A model as a deployment would run it: plain sources, and topics behind chosen windows."""

from collections.abc import Collection, Mapping

from lxml import etree

from espha.connectors.topics import TopicPlan
from espha.model.files import home, put_in_files
from espha.model.problems import Findings
from espha.model.tokens import substitute
from espha.model.xml import parse

ORDER_LOG = "order"
DEAD_LETTERS = "dead"
"""Topics that no window has: those are called like the window."""


def spark_model(
    xml: bytes,
    tokens: Mapping[str, str],
    environment: Mapping[str, str],
    published: Collection[str],
) -> str:
    """Return the model with values for its tokens, its files, and Kafka connectors for these only.

    Args:
        xml: the model, which has been read without problems.
        tokens: values from outside.
        environment: values for tokens that have none otherwise.
        published: "query/window" of the windows whose events are wanted.
    """
    root = parse(xml, "model")
    project = root if root.tag == "project" else next(root.iter("project"))
    substitute(project, tokens, Findings(), environment=environment)
    put_in_files(project, home(tokens), Findings())
    for groups in project.findall("project-connectors"):
        project.remove(groups)
    for query in project.iter("contquery"):
        for windows in query.findall("windows"):
            for window in windows:
                path = f"{query.get('name')}/{window.get('name')}"
                _connect(window, path in published)
    return etree.tostring(project, encoding="unicode")


def _connect(window: etree._Element, published: bool) -> None:
    for connectors in window.findall("connectors"):
        window.remove(connectors)
    if published:
        connectors = etree.SubElement(window, "connectors")
        connector = etree.SubElement(connectors, "connector", {"class": "kafka", "name": "out"})
        properties = etree.SubElement(connector, "properties")
        etree.SubElement(properties, "property", {"name": "type"}).text = "sub"


def plan_of(sources: Collection[str], published: Collection[str]) -> TopicPlan:
    """Return topics that are called like their windows."""
    return TopicPlan(
        prefix="",
        inputs={path: path for path in sources},
        outputs={path: path for path in published},
        order_log=ORDER_LOG,
        dead_letters=DEAD_LETTERS,
        scratch="",
    )
