"""A cluster with three workers, one operator, and a deployment for each module."""

import json
import os
import re
import uuid
from collections.abc import Iterator

import pytest

from cluster import spaces
from day_two.live import (
    CLASS,
    EXPANDABLE,
    PATIENT_KAFKA,
    PATIENT_ZOOKEEPER,
    SYSTEM,
    Live,
    nodes,
)
from tools import ROOT
from tools.offline_cluster import clients

FORGETS = re.compile(r"cache 30 \{[^}]*\}")
"""CoreDNS with kubeadm's exception for pods and Services."""
KEPT = "ESPHA_DAY_TWO"
"""Names a namespace whose deployment stays, and is used again by the next run."""


def remember_addresses() -> None:
    """Let DNS remember the addresses of pods for half a minute, as it does in many clusters."""
    dns = ("-n", "kube-system", "configmap", "coredns")
    found = json.loads(clients.kubectl("get", *dns, "-o", "json"))["data"]["Corefile"]
    wanted = FORGETS.sub("cache 30", found)
    if wanted == found:
        return
    change = {"data": {"Corefile": wanted}}
    clients.kubectl("patch", *dns, "--type=merge", "-p", json.dumps(change))
    clients.kubectl("-n", "kube-system", "rollout", "restart", "deployment/coredns")
    clients.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=3m")


@pytest.fixture(scope="session")
def operator() -> str:
    """The namespace of the operator, installed with Helm from this checkout."""
    if len(nodes()) < 3:
        pytest.fail("needs a cluster with three workers: make test-day-two makes it")
    remember_addresses()
    clients.helm(
        "upgrade", "--install", "espha", ROOT / "charts" / "espha",
        "--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout", "5m",
        timeout=320,
    )  # fmt: skip
    # The images keep their tag when they are built again.
    clients.kubectl("-n", SYSTEM, "rollout", "restart", "deployment/espha-operator")
    clients.kubectl("-n", SYSTEM, "rollout", "status", "deployment/espha-operator", "--timeout=3m")
    return SYSTEM


@pytest.fixture(scope="module")
def live(operator: str) -> Iterator[Live]:
    """A deployment that is ready, and gets rows."""
    kept = os.environ.get(KEPT, "")
    made = Live(kept or f"day2-{uuid.uuid4().hex[:6]}")
    if not kept or not clients.kubectl("get", "namespace", kept, "--ignore-not-found"):
        spaces.create(made.namespace)
        made.deploy()
        made.feed()
    yield made
    if kept:
        return
    made.kubectl("delete", "espha", "--all", "--timeout=3m")
    clients.kubectl("delete", "namespace", made.namespace, "--wait=false")


@pytest.fixture(scope="module")
def expandable(operator: str) -> Iterator[Live]:
    """A deployment that gets rows, and whose brokers and engines have volumes that may grow."""
    clients.kubectl("apply", "-f", "-", stdin=json.dumps(CLASS))
    made = Live(f"disks-{uuid.uuid4().hex[:6]}")
    spaces.create(made.namespace)
    storage = {"size": "1Gi", "storageClassName": EXPANDABLE}
    try:
        made.deploy(
            zookeeper={**PATIENT_ZOOKEEPER, "storage": {"size": "1Gi"}},
            kafka={**PATIENT_KAFKA, "storage": storage},
            engines={"replicas": 3, "snapshots": {"storage": storage}},
        )
        made.feed()
        yield made
    finally:
        made.kubectl("delete", "espha", "--all", "--timeout=3m")
        clients.kubectl("delete", "namespace", made.namespace, "--wait=false")
        clients.kubectl("delete", "storageclass", EXPANDABLE)
