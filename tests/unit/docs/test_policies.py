"""The NetworkPolicies that a page shows fit the pods that the operator makes."""

import re
from functools import cache
from typing import Any

import pytest
import yaml

from espha_operator.resources import adapters, engines, kafka, zookeeper
from unit.docs.markdown import ROOT
from unit.operator.samples import FULL, MODEL, deployment

Object = dict[str, Any]
PAGE = ROOT / "docs" / "how-to" / "restrict-access.md"
# Labels of the namespace that the operator runs in.
HOME = {"kubernetes.io/metadata.name": "espha-system"}
PORTS = {
    "engine": {8080, 8081, 8082},
    "adapter": {8080, 8081, 8082},
    "kafka": {9092, 9093},
    "zookeeper": {2181, 2888, 3888},
}
NEEDED = {
    ("engine", "engine"): PORTS["engine"],
    ("engine", "kafka"): {9092},
    ("engine", "zookeeper"): {2181},
    ("adapter", "adapter"): PORTS["adapter"],
    ("adapter", "kafka"): {9092},
    ("adapter", "zookeeper"): {2181},
    ("kafka", "kafka"): {9092, 9093},
    ("zookeeper", "zookeeper"): {2888, 3888},
    ("operator", "engine"): {8080},
    ("operator", "adapter"): {8080},
    ("operator", "kafka"): {9092},
    ("operator", "zookeeper"): {2181},
}


@cache
def policies(direction: str) -> list[Object]:
    """Return those of the page that are about what comes in, or about what goes out."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    found = [one for block in blocks for one in yaml.safe_load_all(block)]
    return [one["spec"] for one in found if one["spec"]["policyTypes"] == [direction]]


def made() -> list[Object]:
    """Return the objects of the deployment `demo`."""
    demo = deployment(**FULL)
    return [
        *zookeeper.zookeeper(demo),
        *kafka.kafka(demo),
        *engines.engines(demo, MODEL),
        *adapters.adapters(demo, MODEL.digest),
    ]


@cache
def pods() -> dict[str, dict[str, str]]:
    """Return the labels of the pods of each component, and of the operator's."""
    found = {}
    for one in made():
        if one["kind"] == "StatefulSet":
            labels = one["spec"]["template"]["metadata"]["labels"]
            found[labels["app.kubernetes.io/component"]] = labels
    installed = yaml.safe_load_all((ROOT / "manifests" / "install.yaml").read_text())
    (operator,) = (one for one in installed if one["kind"] == "Deployment")
    return found | {"operator": operator["spec"]["template"]["metadata"]["labels"]}


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Tell whether a selector takes an object with such labels."""
    rules = selector.get("matchExpressions", [])
    assert {one["operator"] for one in rules} <= {"In"}
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(one["key"]) in one["values"] for one in rules
    )


def comes(peer: Object, labels: dict[str, str], *, from_operator: bool) -> bool:
    """Tell whether a pod is such a peer: one of the deployment's namespace, or the operator."""
    if "namespaceSelector" in peer:
        there = from_operator and selects(peer["namespaceSelector"], HOME)
    else:
        there = not from_operator
    return there and selects(peer["podSelector"], labels)


def open_ports(to: dict[str, str], labels: dict[str, str], *, from_operator: bool) -> set[int]:
    """Return the ports of a pod that another one can reach."""
    return {
        port["port"]
        for policy in policies("Ingress")
        if selects(policy["podSelector"], to)
        for rule in policy["ingress"]
        if any(comes(peer, labels, from_operator=from_operator) for peer in rule["from"])
        for port in rule["ports"]
    }


def test_the_ports_are_those_that_pods_have() -> None:
    listening: dict[str, set[int]] = {name: set() for name in PORTS}
    for one in made():
        component = one["metadata"]["labels"]["app.kubernetes.io/component"]
        if one["kind"] == "Service":
            listening[component] |= {port["port"] for port in one["spec"]["ports"]}
        if one["kind"] == "StatefulSet":
            (container,) = one["spec"]["template"]["spec"]["containers"]
            listening[component] |= {port["containerPort"] for port in container["ports"]}
    assert listening == PORTS


@pytest.mark.parametrize("to", PORTS)
@pytest.mark.parametrize("source", [*PORTS, "operator"])
def test_each_pod_reaches_what_it_has_to_and_nothing_else(source: str, to: str) -> None:
    known = pods()
    reached = open_ports(known[to], known[source], from_operator=source == "operator")
    assert reached == NEEDED.get((source, to), set())


@pytest.mark.parametrize("to", PORTS)
def test_others_reach_nothing(to: str) -> None:
    known = pods()
    stranger = {"app.kubernetes.io/name": "espha", "app.kubernetes.io/instance": "another"}
    for labels in (stranger, {}, known["operator"]):
        assert open_ports(known[to], labels, from_operator=False) == set()


def test_what_goes_out_goes_to_the_deployment_and_to_names() -> None:
    (policy,) = policies("Egress")
    ours, names = policy["egress"]
    known = pods()
    for component in PORTS:
        assert selects(policy["podSelector"], known[component])
        assert comes(ours["to"][0], known[component], from_operator=False)
    assert "ports" not in ours
    assert {(port["port"], port["protocol"]) for port in names["ports"]} == {
        (53, "UDP"),
        (53, "TCP"),
    }
