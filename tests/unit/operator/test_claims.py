"""How many nodes can mount the volumes of adapters."""

from typing import Any

import pytest

from espha_operator.reconcile.claims import Claims
from espha_operator.reconcile.cluster import Cluster
from unit.operator.samples import FULL, deployment


class Counting:
    """A cluster with one claim, that counts how often it is asked."""

    def __init__(self, modes: list[str] | None) -> None:
        self.modes, self.asked, self.now = modes, 0, 0.0

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Return the claim."""
        assert (kind, namespace, name) == ("PersistentVolumeClaim", "shop", "demo-data")
        self.asked += 1
        return None if self.modes is None else {"spec": {"accessModes": self.modes}}


def claims(cluster: Counting) -> Claims:
    asked: Any = cluster
    connection: Cluster = asked
    return Claims(connection, lambda: cluster.now)


@pytest.mark.parametrize(
    ("modes", "shared"),
    [
        (["ReadWriteOnce"], set()),
        (["ReadWriteOncePod"], set()),
        (["ReadWriteMany"], {"demo-data"}),
        (["ReadWriteOnce", "ReadWriteMany"], {"demo-data"}),
        (None, set()),
    ],
)
def test_the_access_mode_decides(modes: list[str] | None, shared: set[str]) -> None:
    assert claims(Counting(modes)).shared(deployment(**FULL)) == shared


def test_a_claim_is_read_once_a_minute_and_for_adapters_only() -> None:
    cluster = Counting(["ReadWriteMany"])
    kept = claims(cluster)
    for _ in range(60):
        assert kept.shared(deployment(**FULL)) == {"demo-data"}
        cluster.now += 1
    assert cluster.asked == 1
    assert kept.shared(deployment()) == frozenset()
    assert cluster.asked == 1


def test_volumes_of_single_replicas_are_not_asked_for() -> None:
    given = {"name": "a", "window": "q/s", "file": {"path": "/data/x"}, "storage": {}}
    cluster = Counting(["ReadWriteMany"])
    assert claims(cluster).shared(deployment(adapters={"inputs": [given]})) == frozenset()
    assert cluster.asked == 0


def test_a_claim_that_comes_later_is_seen() -> None:
    cluster = Counting(None)
    kept = claims(cluster)
    assert kept.shared(deployment(**FULL)) == frozenset()
    cluster.modes = ["ReadWriteMany"]
    cluster.now += 5
    assert kept.shared(deployment(**FULL)) == {"demo-data"}
