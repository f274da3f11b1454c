"""Where the scheduler puts pods, on three workers in three zones; no pod needs to run for it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import spaces
from espha.local.waiting import wait_until
from espha_operator.resources import adapters, kafka
from tools.offline_cluster import clients
from unit.operator.samples import FULL, MODEL, deployment

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
Object = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
PRODUCER = Path(__file__).parents[2] / "manifests" / "sample-producer.yaml"
ROUNDS = 10


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    return clients.kubectl(*arguments, stdin=stdin)


@pytest.fixture
def namespace() -> Iterator[str]:
    with spaces.made("place") as name:
        yield name
    kubectl("delete", "persistentvolume", name, "--ignore-not-found", "--wait=false")


def zones() -> dict[str, str]:
    """The zone of each worker."""
    listed = json.loads(kubectl("get", "nodes", "-l", ZONE, "-o", "json"))["items"]
    return {one["metadata"]["name"]: one["metadata"]["labels"][ZONE] for one in listed}


def idle(made: Object) -> Object:
    """The same with pods that are placed, and then do nothing: there is no such image."""
    thing: Object = json.loads(json.dumps(made))
    thing["metadata"].pop("ownerReferences", None)
    thing["metadata"].pop("namespace", None)
    claims = thing["spec"].pop("volumeClaimTemplates", [])
    thing["spec"].pop("persistentVolumeClaimRetentionPolicy", None)
    pod = thing["spec"]["template"]["spec"]
    pod["volumes"] += [{"name": one["metadata"]["name"], "emptyDir": {}} for one in claims]
    for container in pod["containers"]:
        container |= {"image": "none", "imagePullPolicy": "Never"}
    return thing


def claim(namespace: str, mode: str) -> list[Object]:
    """A volume that any node could mount as the claim says, as a disk in a network is."""
    wanted = {"accessModes": [mode], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            **wanted,
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": f"/tmp/{namespace}"},
            "claimRef": {"namespace": namespace, "name": "demo-data"},
        },
    }
    request: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "demo-data"},
        "spec": {**wanted, "resources": {"requests": {"storage": "1Gi"}}},
    }
    return [volume, request]


def placed(namespace: str, objects: list[Object], count: int) -> dict[str, str]:
    """The node of each pod, once so many pods have one."""
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(listed))
    found: dict[str, str] = {}

    def all_placed() -> bool:
        items = json.loads(kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
        nodes = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in items}
        found.update({name: node for name, node in nodes.items() if node})
        return len(found) == count

    wait_until(all_placed, 60, f"{count} pods are placed")
    return found


def sets(objects: list[Object]) -> list[Object]:
    return [idle(one) for one in objects if one["kind"] == "StatefulSet"]


@pytest.mark.parametrize("number", range(ROUNDS))
def test_all_that_mount_a_volume_of_one_node_are_on_one_node(namespace: str, number: int) -> None:
    """Adapters and the sample's producer, whichever comes first."""
    made = sets(adapters.adapters(deployment(**FULL), MODEL.digest))
    producer = idle(yaml.safe_load(PRODUCER.read_text()))
    both = [producer, *made] if number % 2 else [*made, producer]
    nodes = placed(namespace, [*claim(namespace, "ReadWriteOnce"), *both], count=4)
    assert len(set(nodes.values())) == 1, nodes


def test_those_that_share_a_volume_of_many_nodes_spread(namespace: str) -> None:
    made = sets(adapters.adapters(deployment(**FULL), MODEL.digest, {"demo-data"}))
    nodes = placed(namespace, [*claim(namespace, "ReadWriteMany"), *made], count=3)
    assert nodes["demo-input-memory-0"] != nodes["demo-input-memory-1"], nodes


@pytest.mark.parametrize(
    "pod",
    [{}, {"topologySpreadConstraints": [{"topologyKey": ZONE}]}],
    ids=["by default", "where they have to"],
)
def test_brokers_are_in_three_zones(namespace: str, pod: Object) -> None:
    spec = {"pod": pod} if pod else {}
    nodes = placed(namespace, sets(kafka.kafka(deployment(kafka=spec))), count=3)
    assert {zones()[node] for node in nodes.values()} == set(zones().values())
