"""The sample of manifests/, applied as it is, on three workers."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from cluster import spaces
from espha.local.waiting import wait_until
from espha_operator.resources.placement import CLAIM
from tools import ROOT
from tools.offline_cluster import clients

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(3600)]

NAME = "demo"
VOLUME = "demo-data"
BOUND = {"demo-input-memory", "demo-output-result", "memory-producer"}
"""Whose pods have the volume, which one node can mount."""
HELD = 4
"""Pods: two replicas of the input adapter, one of the output adapter, and the producer."""


class Pod(NamedTuple):
    """A pod: where it is, and whether it is ready."""

    name: str
    node: str
    ready: bool


@pytest.fixture(scope="module")
def sample(operator: str) -> Iterator[str]:
    """The namespace where both manifests are applied, as people apply them."""
    with spaces.made("sample") as name:
        for manifest in ("esp-ha.yaml", "sample-producer.yaml"):
            clients.kubectl("-n", name, "apply", "-f", ROOT / "manifests" / manifest)
        spaces.wait_for(name, "Ready", NAME)
        yield name
        clients.kubectl("-n", name, "delete", "espha", "--all", "--timeout=3m")


def pods(namespace: str, *selector: str) -> list[Pod]:
    """Return the pods that a selector chooses, but for those that are on their way out."""
    chosen = ["-l", ",".join(selector)] if selector else []
    listed = json.loads(clients.kubectl("-n", namespace, "get", "pods", *chosen, "-o", "json"))
    return [_pod(one) for one in listed["items"] if "deletionTimestamp" not in one["metadata"]]


def _pod(one: dict[str, Any]) -> Pod:
    conditions = one["status"].get("conditions") or []
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return Pod(one["metadata"]["name"], one["spec"].get("nodeName", ""), ready)


def test_all_that_mount_the_volume_are_ready_on_one_node(sample: str) -> None:
    """The producer is no part of the deployment: that is ready without it."""

    def settled() -> bool:
        found = pods(sample, f"{CLAIM}={VOLUME}")
        return len(found) == HELD and all(one.ready for one in found)

    wait_until(settled, spaces.QUIET_S, "all pods with the volume are ready", 1.0)
    held = pods(sample, f"{CLAIM}={VOLUME}")
    assert len({one.node for one in held}) == 1, held
    begins = {next((name for name in BOUND if one.name.startswith(f"{name}-")), "") for one in held}
    assert begins == BOUND
    claim = json.loads(clients.kubectl("-n", sample, "get", "pvc", VOLUME, "-o", "json"))
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert claim["status"]["phase"] == "Bound"


@pytest.mark.parametrize("component", ["kafka", "zookeeper", "engine"])
def test_all_others_are_on_different_nodes(sample: str, component: str) -> None:
    """The volume of the adapters binds nothing else."""
    found = pods(
        sample, f"app.kubernetes.io/instance={NAME}", f"app.kubernetes.io/component={component}"
    )
    assert [one.ready for one in found] == [True] * 3, found
    assert len({one.node for one in found}) == 3, found


def test_rows_come_out_in_the_file_each_one_once(sample: str) -> None:
    """From the producer's file, through the engines, into the other one on the same volume."""
    found: list[int] = []

    def enough() -> bool:
        found[:] = rows(sample)
        return len(found) >= 50

    wait_until(enough, spaces.QUIET_S, "fifty rows of the result", 1.0)
    assert found == list(range(found[0], found[0] + len(found)))


def rows(namespace: str) -> list[int]:
    """Return the numbers of the rows in the result; none where it is not there yet.

    A row that is being written while it is read counts the next time.
    """
    code = (
        "import pathlib; file = pathlib.Path('/data/result.csv'); "
        "print(file.read_text() if file.exists() else '')"
    )
    said = clients.kubectl(
        "-n", namespace, "exec", "demo-output-result-0", "--", "python3", "-c", code
    )
    header, *lines = said.rstrip("\n").splitlines() or [""]
    place = header.split(",").index("Record_Counter") if header else 0
    whole = [line.split(",") for line in lines if line.count(",") == header.count(",")]
    return [int(cells[place]) for cells in whole]
