"""What users add to pods, and where pods run."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from espha.protocol.deaths import MEMORY
from espha_operator.api.images import Images
from espha_operator.api.pods import KeyOf
from espha_operator.resources import adapters, common, engines, kafka, zookeeper
from unit.operator.samples import ADAPTERS, FULL, MODEL, deployment

Object = dict[str, Any]
TEMPLATE: Object = {
    "labels": {"team": "trading"},
    "annotations": {"prometheus.io/scrape": "true"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "kafka", "operator": "Exists", "effect": "NoSchedule"}],
    "priorityClassName": "high",
    "serviceAccountName": "shop",
    "env": [{"name": "TZ", "value": "UTC"}],
    "imagePullSecrets": [{"name": "own"}],
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"noisy": "yes"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    },
    "topologySpreadConstraints": [{"topologyKey": "topology.kubernetes.io/zone"}],
}


def sets(objects: list[Object]) -> list[Object]:
    return [one for one in objects if one["kind"] == "StatefulSet"]


def with_pod(component: str, pod: Object) -> Object:
    """The pod template of a component whose `pod` says this."""
    if component == "adapters":
        inputs = [{**ADAPTERS["inputs"][0], "pod": pod}]
        made = adapters.adapters(
            deployment(adapters={"inputs": inputs}), MODEL.digest, {"demo-data"}
        )
    else:
        given = deployment(**{component: {"pod": pod}})
        build: dict[str, Callable[[], list[Object]]] = {
            "zookeeper": lambda: zookeeper.zookeeper(given),
            "kafka": lambda: kafka.kafka(given),
            "engines": lambda: engines.engines(given, MODEL),
        }
        made = build[component]()
    (found,) = sets(made)
    template: Object = found["spec"]["template"]
    assert (
        found["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    )
    return template


@pytest.mark.parametrize("component", ["zookeeper", "kafka", "engines", "adapters"])
def test_every_component_has_what_users_add(component: str) -> None:
    usual, made = with_pod(component, {}), with_pod(component, TEMPLATE)
    assert made["metadata"]["labels"] == {**usual["metadata"]["labels"], "team": "trading"}
    assert made["metadata"]["annotations"].items() >= TEMPLATE["annotations"].items()
    for field in ("nodeSelector", "tolerations", "priorityClassName", "serviceAccountName"):
        assert made["spec"][field] == TEMPLATE[field]
        assert field not in usual["spec"]
    assert made["spec"]["imagePullSecrets"] == [{"name": "own"}]
    assert made["spec"]["containers"][0]["env"][-1] == {"name": "TZ", "value": "UTC"}
    own = made["spec"]["affinity"]["podAntiAffinity"]
    assert len(own["requiredDuringSchedulingIgnoredDuringExecution"]) == 1
    assert own["preferredDuringSchedulingIgnoredDuringExecution"]
    # what makes a pod restricted does not change
    assert made["spec"]["securityContext"] == usual["spec"]["securityContext"]
    for field in ("securityContext", "volumeMounts", "resources"):
        assert made["spec"]["containers"][0][field] == usual["spec"]["containers"][0][field]
    assert made["spec"]["automountServiceAccountToken"] is False


def test_pods_rather_run_on_different_nodes_and_in_different_zones() -> None:
    spec = with_pod("kafka", {})["spec"]
    (far,) = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert far["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    (zones,) = spec["topologySpreadConstraints"]
    assert (zones["topologyKey"], zones["whenUnsatisfiable"]) == (
        "topology.kubernetes.io/zone",
        "ScheduleAnyway",
    )


def test_a_constraint_for_zones_replaces_the_usual_one() -> None:
    (zones,) = with_pod("kafka", TEMPLATE)["spec"]["topologySpreadConstraints"]
    assert zones["whenUnsatisfiable"] == "DoNotSchedule"
    assert zones["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "kafka"
    racks = {"topologySpreadConstraints": [{"topologyKey": "rack", "maxSkew": 2}]}
    keys = [
        one["topologyKey"] for one in with_pod("kafka", racks)["spec"]["topologySpreadConstraints"]
    ]
    assert keys == ["rack", "topology.kubernetes.io/zone"]


def placed(shared: set[str]) -> list[Object]:
    return adapters.adapters(deployment(**FULL), MODEL.digest, shared)


def test_pods_of_a_volume_for_one_node_run_on_one_node() -> None:
    """All of them, of whichever adapter; they leave it together, so no budget keeps them there."""
    objects = placed(shared=set())
    assert len(sets(objects)) == 2
    for one in sets(objects):
        template = one["spec"]["template"]
        assert template["metadata"]["labels"]["espha.dev/claim"] == "demo-data"
        (near,) = template["spec"]["affinity"]["podAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert near == {
            "labelSelector": {"matchLabels": {"espha.dev/claim": "demo-data"}},
            "topologyKey": "kubernetes.io/hostname",
        }
        assert "podAntiAffinity" not in template["spec"]["affinity"]
        assert "espha.dev/claim" not in one["spec"]["selector"]["matchLabels"]
    assert not [one for one in objects if one["kind"] == "PodDisruptionBudget"]


def test_pods_of_a_volume_for_many_nodes_spread() -> None:
    objects = placed(shared={"demo-data"})
    for one in sets(objects):
        template = one["spec"]["template"]
        assert "espha.dev/claim" not in template["metadata"]["labels"]
        assert list(template["spec"]["affinity"]) == ["podAntiAffinity"]
    budgets = [one for one in objects if one["kind"] == "PodDisruptionBudget"]
    assert [one["metadata"]["name"] for one in budgets] == [
        "demo-input-memory",
        "demo-output-result",
    ]


def test_the_label_of_a_claim_with_a_long_name_is_a_fingerprint() -> None:
    long = 100 * "a"
    inputs = [{**ADAPTERS["inputs"][0], "volume": {"claimName": long}}]
    (one,) = sets(adapters.adapters(deployment(adapters={"inputs": inputs}), MODEL.digest))
    assert len(one["spec"]["template"]["metadata"]["labels"]["espha.dev/claim"]) == 16


def test_pull_secrets_and_policy_come_from_the_spec_or_the_operator() -> None:
    def pod(images: Images, **spec: Any) -> Object:
        given = deployment(**spec)
        pods = type(given)(given.name, given.namespace, given.uid, 1, given.spec, images)
        made: Object = sets(kafka.kafka(pods))[0]["spec"]["template"]["spec"]
        return made

    operators = Images(image_pull_policy="Always", image_pull_secrets=("chart",))
    usual = pod(operators)
    assert usual["imagePullSecrets"] == [{"name": "chart"}]
    assert usual["containers"][0]["imagePullPolicy"] == "Always"
    own = pod(
        operators,
        imagePullPolicy="Never",
        imagePullSecrets=[{"name": "a"}],
        kafka={"pod": {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]}},
    )
    assert own["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert own["containers"][0]["imagePullPolicy"] == "Never"
    assert "imagePullSecrets" not in pod(Images())


def test_volumes_are_not_gone_through_at_each_start_and_tmp_is_bounded() -> None:
    spec = with_pod("engines", {})["spec"]
    assert spec["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}} in spec["volumes"]


def test_engines_have_memory_that_outlives_a_container_and_needs_no_disk() -> None:
    """There they note what they run; see `espha.protocol.deaths`."""
    spec = with_pod("engines", {})["spec"]
    (memory,) = (one for one in spec["volumes"] if "medium" in one.get("emptyDir", {}))
    (mount,) = (
        one for one in spec["containers"][0]["volumeMounts"] if one["name"] == memory["name"]
    )
    assert (memory["emptyDir"]["medium"], mount["mountPath"]) == ("Memory", MEMORY)


def test_servers_are_given_an_hour_to_start_and_a_minute_to_answer() -> None:
    probes = common.tcp_probes(9092)
    seconds = {name: one["periodSeconds"] * one["failureThreshold"] for name, one in probes.items()}
    assert seconds == {"startupProbe": 3600, "readinessProbe": 6, "livenessProbe": 60}


@pytest.mark.parametrize("key", ["model.xml", ".env", "-", "a..b", "_"])
def test_what_kubernetes_takes_for_a_key_is_one(key: str) -> None:
    assert KeyOf(name="s", key=key).key == key


@pytest.mark.parametrize("key", [".", "..", "..env", "a b", ""])
def test_what_kubernetes_refuses_is_no_key(key: str) -> None:
    with pytest.raises(ValidationError, match="pattern"):
        KeyOf(name="s", key=key)
