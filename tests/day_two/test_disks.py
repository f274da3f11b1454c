"""Volumes that grow, and servers that lose theirs, while rows flow."""

import json
import uuid
from collections.abc import Iterator

import pytest

from cluster import spaces
from day_two.live import Live
from espha.local.waiting import wait_until
from tools.offline_cluster import clients

EXPANDABLE = "espha-expandable"
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": EXPANDABLE},
    # Its volumes are folders: the API server takes a larger claim, and the folder stays as it is.
    "provisioner": "rancher.io/local-path",
    "volumeBindingMode": "WaitForFirstConsumer",
    "reclaimPolicy": "Delete",
    "allowVolumeExpansion": True,
}
STILL_S = 300.0


@pytest.fixture(scope="module")
def flowing(operator: str) -> Iterator[Live]:
    """A deployment on volumes that may grow; rows flow."""
    clients.kubectl("apply", "-f", "-", stdin=json.dumps(CLASS))
    made = Live(f"disks-{uuid.uuid4().hex[:6]}")
    spaces.create(made.namespace)
    storage = {"size": "1Gi", "storageClassName": EXPANDABLE}
    try:
        made.deploy(
            zookeeper={"replicas": 3, "storage": {"size": "1Gi"}},
            kafka={"replicas": 3, "storage": storage},
            engines={"replicas": 3, "snapshots": {"storage": storage}},
        )
        made.feed()
        yield made
    finally:
        made.kubectl("delete", "espha", "--all", "--timeout=3m")
        clients.kubectl("delete", "namespace", made.namespace, "--wait=false")
        clients.kubectl("delete", "storageclass", EXPANDABLE)


def told(live: Live, path: str, *what: str) -> str:
    return live.kubectl("get", *what, "-o", f"jsonpath={path}")


def patch(live: Live, spec: dict[str, object]) -> None:
    change = json.dumps({"spec": spec})
    live.kubectl("patch", "espha", "demo", "--type=merge", "-p", change)


def condition(live: Live, name: str) -> str:
    path = f'{{.status.conditions[?(@.type=="{name}")].reason}}'
    return told(live, path, "espha", "demo")


def uids(live: Live, *what: str) -> list[str]:
    return told(live, "{.items[*].metadata.uid}", *what).split()


def test_volumes_grow_and_no_pod_restarts(flowing: Live) -> None:
    brokers = ("pods", "-l", "app.kubernetes.io/component=kafka")
    before = uids(flowing, *brokers)
    old = told(flowing, "{.metadata.uid}", "statefulset", "demo-kafka")
    patch(flowing, {"kafka": {"storage": {"size": "2Gi", "storageClassName": EXPANDABLE}}})
    template = "{.spec.volumeClaimTemplates[0].spec.resources.requests.storage}"
    wait_until(
        lambda: told(flowing, template, "statefulset", "demo-kafka", "--ignore-not-found") == "2Gi",
        STILL_S,
        "the template has grown",
    )
    claims = ("pvc", "-l", "app.kubernetes.io/component=kafka")
    asked = told(flowing, "{.items[*].spec.resources.requests.storage}", *claims)
    assert asked.split() == ["2Gi"] * 3
    assert told(flowing, "{.metadata.uid}", "statefulset", "demo-kafka") != old
    flowing.wait_ready()
    assert uids(flowing, *brokers) == before


def test_a_class_that_cannot_is_said(flowing: Live) -> None:
    patch(flowing, {"zookeeper": {"storage": {"size": "2Gi"}}})
    wait_until(lambda: condition(flowing, "VolumesFit") == "CannotGrow", STILL_S, "it is refused")
    events = told(flowing, "{.items[*].reason}", "events").split()
    assert events.count("CannotGrow") == 1


@pytest.mark.parametrize("pod", ["demo-kafka-1", "demo-zookeeper-2", "demo-engine-0"])
def test_a_pod_is_rebuilt_with_an_empty_volume(flowing: Live, pod: str) -> None:
    volume = "snapshots" if "engine" in pod else "data"
    claim = ("pvc", f"{volume}-{pod}", "--ignore-not-found")
    before = told(flowing, "{.metadata.uid}", *claim)
    flowing.kubectl("annotate", "espha", "demo", f"espha.dev/replace={pod}")
    wait_until(
        lambda: told(flowing, "{.metadata.uid}", *claim) not in ("", before),
        STILL_S,
        "there is another volume",
    )
    flowing.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=5m")
    wait_until(
        lambda: all(
            condition(flowing, one) in ("Serving", "InSync")
            for one in ("KafkaReady", "ZooKeeperReady", "ReplicasInSync")
        ),
        STILL_S,
        "all is whole again",
    )
    assert "Replaced" in told(flowing, "{.items[*].reason}", "events")


def test_nothing_was_lost(flowing: Live) -> None:
    report = flowing.verify()
    assert report["ok"], report
