"""What the operator may not do, and what it leaves alone, on a real cluster."""

import json

import pytest
import yaml

from cluster.spaces import conditions
from cluster.test_chart import KUBERNETES
from cluster.test_operator import SMALL, resource, until
from tools.offline_cluster import clients
from tools.offline_cluster.say import Failure

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
ACCOUNT = "system:serviceaccount:espha-system:espha-operator"


def may(verb: str, kind: str, namespace: str, account: str = ACCOUNT) -> bool:
    try:
        answer = clients.kubectl("auth", "can-i", verb, kind, "-n", namespace, "--as", account)
    except Failure:  # which is how kubectl says no
        return False
    return answer.strip() == "yes"


def test_the_operator_reads_no_secret_but_its_key(operator: str, other_namespace: str) -> None:
    for namespace in ("kube-system", other_namespace, operator):
        for verb in ("get", "list", "watch", "patch", "update", "delete"):
            assert not may(verb, "secrets", namespace), (verb, namespace)
    assert may("get", "secrets/espha-operator-key", operator)
    assert may("create", "secrets", other_namespace)
    assert not may("get", "nodes", "default")
    assert not may("create", "pods", other_namespace)


def test_with_namespaces_named_there_are_no_rights_elsewhere() -> None:
    chart = "charts/espha"
    values = ("--kube-version", KUBERNETES, "--set", "watchNamespaces={shop,plant}")
    text = clients.helm("template", "espha", chart, "-n", "espha-system", "--no-hooks", *values)
    made = [one for one in yaml.safe_load_all(text) if one]
    bound = [one for one in made if one["kind"] == "ClusterRoleBinding"]
    assert bound == []
    roles = [one for one in made if one["kind"] == "RoleBinding"]
    assert sorted(one["metadata"]["namespace"] for one in roles) == [
        "espha-system", "plant", "shop",
    ]  # fmt: skip
    deployment = next(one for one in made if one["kind"] == "Deployment")
    listed = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    values_of = {one["name"]: one.get("value") for one in listed}
    assert values_of["ESPHA_WATCH_NAMESPACES"] == "shop,plant"


def test_what_others_have_made_survives_a_deployment(other_namespace: str) -> None:
    """Its namesake ConfigMap is refused with a sentence, and all else is made nevertheless."""
    where = ("-n", other_namespace)
    clients.kubectl(*where, "create", "configmap", "mine-kafka", "--from-literal=a=b")
    clients.kubectl(*where, "apply", "-f", "-", stdin=resource("mine", **SMALL))
    refused = "ConfigMap mine-kafka exists and is not this deployment's"
    until(
        lambda: refused in conditions(other_namespace, "mine").get("Ready", {}).get("message", ""),
        "the ConfigMap is refused",
    )
    clients.kubectl(*where, "get", "statefulset", "mine-zookeeper")
    kept = json.loads(clients.kubectl(*where, "get", "configmap", "mine-kafka", "-o", "json"))
    assert kept["data"] == {"a": "b"}
    assert "ownerReferences" not in kept["metadata"]
    resource_text = clients.kubectl(*where, "get", "espha", "mine", "-o", "json")
    assert "finalizers" not in json.loads(resource_text)["metadata"]
    clients.kubectl(*where, "delete", "espha", "mine", "--timeout=60s")
    clients.kubectl(*where, "get", "configmap", "mine-kafka")
    clients.kubectl(*where, "delete", "configmap", "mine-kafka")
