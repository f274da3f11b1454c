"""A second release, for one namespace only: its Role is enough, and its webhook checks models.

The operator for all namespaces runs beside it, and leaves the namespace alone: the lease is not its
own.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cluster import spaces
from cluster.test_isolation import may
from cluster.test_operator import BAD_MODELS, MODEL, objects, resource, until
from tools.offline_cluster import clients
from tools.offline_cluster.say import Failure

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
CHART = Path(__file__).parents[2] / "charts" / "espha"
OPERATOR = "deployment/espha-operator"
SELECTOR = ("-l", "app.kubernetes.io/name=espha-operator")
NOWHERE = {"replicas": 1, "pod": {"nodeSelector": {"no": "node"}}}
IDLE: dict[str, Any] = dict.fromkeys(("zookeeper", "kafka", "engines"), NOWHERE)
"""Everything is made, and no pod runs."""
RIGHTS = (
    ("patch", "esphadeployments.espha.dev"),
    ("create", "configmaps"),
    ("create", "secrets"),
    ("delete", "statefulsets.apps"),
    ("patch", "persistentvolumeclaims"),
    ("delete", "pods"),
    ("create", "poddisruptionbudgets.policy"),
)


class Release(NamedTuple):
    """A release of the chart.

    Attributes:
        system: where its operator is.
        namespace: where its deployments are.
    """

    system: str
    namespace: str

    @property
    def account(self) -> str:
        """Who the operator is to the API server."""
        return f"system:serviceaccount:{self.system}:espha-operator"

    def pod(self) -> str:
        """Return the operator's pod; empty: there is none."""
        return clients.kubectl("-n", self.system, "get", "pods", *SELECTOR, "-o", "name").strip()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl where its deployments are."""
        return clients.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def refusal(self, text: str) -> str:
        """Return why an object would be refused; empty: it would be taken."""
        try:
            self.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
        except Failure as failure:
            return str(failure)
        return ""


@pytest.fixture(scope="module")
def second(operator: str) -> Iterator[Release]:
    """A release that watches one namespace, and checks models there when they are applied."""
    with (
        spaces.made("test", spaces.RESTRICTED) as system,
        spaces.made("test", spaces.RESTRICTED) as namespace,
    ):
        where = ("--namespace", system)
        values = (
            f"watchNamespaces={{{namespace}}}",
            "webhook.enabled=true",
            "crds.enabled=false",
            "rbac.aggregate=false",
        )
        try:
            clients.helm(
                "install", "espha", CHART, *where, "--wait", "--timeout", "3m",
                *(word for value in values for word in ("--set", value)),
            )  # fmt: skip
            yield Release(system, namespace)
        finally:
            clients.helm("uninstall", "espha", *where, "--ignore-not-found")


def test_a_role_in_its_namespace_is_enough(second: Release) -> None:
    """It makes all that a deployment starts with, and may do nothing elsewhere."""
    identity = f"{second.system}/{second.pod().removeprefix('pod/')}"
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "espha-operator"},
        "spec": {"holderIdentity": identity},
    }
    second.kubectl("apply", "-f", "-", stdin=json.dumps(lease))
    second.kubectl("apply", "-f", "-", stdin=resource(**IDLE))
    wanted = {
        "statefulset.apps/small-zookeeper",
        "statefulset.apps/small-kafka",
        "service/small-kafka",
        "poddisruptionbudget.policy/small-zookeeper",
    }
    until(lambda: wanted <= set(objects(second.namespace)), "all is made", 50)
    until(lambda: "ModelValid" in spaces.conditions(second.namespace, "small"), "the status", 30)
    secrets = second.kubectl("get", "secrets", "-o", "name")
    assert "secret/small-espha-token-" in secrets
    path = "jsonpath={.spec.holderIdentity}"
    assert second.kubectl("get", "lease", "espha-operator", "-o", path) == identity
    second.kubectl("delete", "espha", "small", "--timeout=30s")


@pytest.mark.parametrize(("verb", "kind"), RIGHTS)
def test_it_may_nothing_elsewhere(
    second: Release, other_namespace: str, verb: str, kind: str
) -> None:
    assert may(verb, kind, second.namespace, second.account)
    for namespace in (other_namespace, "kube-system", second.system):
        if (kind, namespace) != ("secrets", second.system):  # where its key is
            assert not may(verb, kind, namespace, second.account), namespace


@pytest.mark.parametrize(("xml", "words"), BAD_MODELS.values(), ids=BAD_MODELS.keys())
def test_a_bad_model_is_refused_when_it_is_applied(
    second: Release, xml: str, words: list[str]
) -> None:
    """With element and line. The API server hears of the certificate a moment later."""
    bad = resource("bad", model={"inline": xml})
    until(lambda: second.refusal(bad) != "", "it is refused", 30)
    said = second.refusal(bad)
    assert "denied the request: spec.model.inline: " in said
    assert [word for word in words if word not in said] == []
    assert second.refusal(resource("good")) == ""


def test_a_config_map_with_a_bad_model_is_refused(second: Release) -> None:
    """Where it is marked as one with a model; other ConfigMaps are nobody's business."""

    def config_map(xml: str, **labels: str) -> str:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "model", "labels": labels},
            "data": {"model.xml": xml},
        }
        return json.dumps(body)

    bad = MODEL.replace("window-source", "window-train")
    marked = {"espha.dev/model": "true"}
    until(lambda: second.refusal(config_map(bad, **marked)) != "", "it is refused", 30)
    said = second.refusal(config_map(bad, **marked))
    assert [word for word in ("model.xml", "line 2", "window-train") if word not in said] == []
    assert second.refusal(config_map(MODEL, **marked)) == ""
    assert second.refusal(config_map(bad)) == ""


def test_helm_test_finds_all_well(second: Release) -> None:
    clients.helm("test", "espha", "--namespace", second.system, "--timeout", "1m")
    said = clients.kubectl("-n", second.system, "logs", "espha-operator-test")
    assert "ok      the webhook refuses a bad model" in said


def test_without_the_operator_everything_is_let_through(second: Release) -> None:
    """The last test of this module: it is a help for people, and stands in nobody's way."""
    clients.kubectl("-n", second.system, "scale", OPERATOR, "--replicas=0")
    until(lambda: second.pod() == "", "the operator has gone", 60)
    xml, _ = BAD_MODELS["unsupported window"]
    second.kubectl("apply", "-f", "-", stdin=resource("bad", model={"inline": xml}))
    second.kubectl("delete", "espha", "bad", "--timeout=30s")
