"""Volumes grow without a pod's restart, and who refuses it is asked seldom and heard once."""

import copy
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from espha_operator.reconcile import growth
from espha_operator.reconcile.growth import Grower, claim, fit
from espha_operator.resources import zookeeper
from espha_operator.status.storage import Claim
from unit.operator.samples import deployment

Object = dict[str, Any]
GIB = 1 << 30


def wanted(size: str = "2Gi") -> list[Object]:
    spec = {"zookeeper": {"storage": {"size": size}}, "pvcPolicy": "Delete"}
    return zookeeper.zookeeper(deployment(**spec))


def live(size: str = "1Gi", when_deleted: str = "Delete", **meta: Any) -> dict[str, Object]:
    made = copy.deepcopy(wanted(size)[-1])
    made["metadata"] |= {"uid": "set-1", **meta}
    made["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] = when_deleted
    return {"demo-zookeeper": made}


def claims(size: int, *owners: str) -> list[Claim]:
    return [
        Claim(f"data-demo-zookeeper-{number}", "zookeeper", request=size, capacity=size,
              owners=frozenset(owners))
        for number in range(3)
    ]  # fmt: skip


def test_a_claim_is_read() -> None:
    one = {
        "metadata": {
            "name": "data-demo-kafka-1",
            "uid": "u",
            "labels": {"app.kubernetes.io/component": "kafka", "espha.dev/servers": "3"},
            "ownerReferences": [{"uid": "set-1"}],
        },
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
        "status": {"capacity": {"storage": "1Gi"}},
    }
    read = claim(one)
    assert (read.component, read.request, read.capacity, read.ordinal) == ("kafka", GIB, GIB, 1)
    assert (set(read.owners), read.servers, read.leaving) == ({"set-1"}, 3, False)
    assert (read.pod, read.pending, read.marked) == ("demo-kafka-1", "", True)
    one["metadata"]["labels"]["espha.dev/servers"] = "0"  # type: ignore[index]
    assert (claim(one).servers, claim(one).marked) == (None, True)
    told = {"type": "FileSystemResizePending", "lastTransitionTime": "2026-02-01T00:00:00Z"}
    for status, pending in (("True", "2026-02-01T00:00:00Z"), ("False", "")):
        conditions = [{"type": "Resizing", "status": "True"}, {**told, "status": status}]
        assert claim({**one, "status": {"conditions": conditions}}).pending == pending


@pytest.mark.parametrize(
    ("there", "known", "size", "policy"),
    [
        ({}, [], "2Gi", "Delete"),
        (live(), claims(GIB), "1Gi", "Delete"),
        (live(), claims(2 * GIB, "set-1"), "1Gi", "Retain"),
        (live(when_deleted="Retain"), claims(2 * GIB, "set-1"), "1Gi", "Retain"),
        (live("2048Mi"), claims(2 * GIB, "set-1"), "2048Mi", "Delete"),
        (live("3Gi"), claims(3 * GIB), "3Gi", "Delete"),
    ],
)
def test_the_template_follows_its_claims(
    there: dict[str, Object], known: list[Claim], size: str, policy: str
) -> None:
    """No claim may go with its set."""
    made = fit(wanted(), there, known)
    spec = made.wanted[-1]["spec"]
    storage = spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
    assert (storage, made.orphan, made.leaving) == (size, (), frozenset())
    assert spec["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == policy


def test_a_set_whose_claims_have_grown_is_let_go_once_and_not_made_anew_as_it_was() -> None:
    """Seen on a cluster: what was applied beside the deletion brought the old template back."""
    there, known = live(when_deleted="Retain"), claims(2 * GIB)
    first = fit(wanted(), there, known)
    assert [one["metadata"]["uid"] for one in first.orphan] == ["set-1"]
    again = fit(wanted(), there, known, {"set-1"})
    leaves = fit(wanted(), live(when_deleted="Retain", deletionTimestamp="now"), known)
    assert (again.orphan, leaves.orphan) == ((), ())
    for made in (first, again, leaves):
        assert set(made.leaving) == {"demo-zookeeper"}
        assert "StatefulSet" not in [one["kind"] for one in made.wanted]
    assert fit(wanted(), {}, known, {"set-1"}).wanted == wanted()


class _Cluster:
    """Takes patches of claims, or refuses them."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.patched: list[str] = []

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        self.patched.append(name)
        if self.status:
            error = ApiException(status=self.status, reason="Forbidden")
            error.body = '{"message": "the class must support resize"}'
            raise error


def test_claims_are_asked_to_grow_until_they_have() -> None:
    cluster = _Cluster()
    grower = Grower(cluster, lambda: 0.0)  # type: ignore[arg-type]
    names = [one.name for one in claims(0)]
    assert grower.grow("shop", wanted(), claims(GIB)) == (tuple(names), "")
    assert cluster.patched == names
    asked = [Claim(one.name, "zookeeper", request=2 * GIB, capacity=GIB) for one in claims(0)]
    assert grower.grow("shop", wanted(), asked) == (tuple(names), "")
    assert grower.grow("shop", wanted(), claims(2 * GIB)) == ((), "")
    assert len(cluster.patched) == 3


def test_a_class_that_cannot_is_asked_seldom() -> None:
    """The condition tells it, and so does one Event of the condition."""
    cluster, now = _Cluster(403), [0.0]
    grower = Grower(cluster, lambda: now[0])  # type: ignore[arg-type]
    for _ in range(20):
        growing, refused = grower.grow("shop", wanted(), claims(GIB))
        now[0] += 3
    assert len(growing) == 3
    assert refused == "data-demo-zookeeper-0 cannot grow to 2Gi: the class must support resize"
    assert len(cluster.patched) == 3
    now[0] += growth.AGAIN
    cluster.status = 0
    assert grower.grow("shop", wanted(), claims(GIB))[1] == ""
