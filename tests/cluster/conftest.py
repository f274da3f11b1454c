"""One operator and one example deployment for all tests of the cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster import spaces
from support.servers import wait_until
from tools.demo_checker import Checker
from tools.offline_cluster import clients

ROOT = Path(__file__).parents[2]
SYSTEM = "espha-system"


@pytest.fixture(scope="session")
def operator() -> str:
    """The namespace of the operator, installed with Helm from this checkout."""
    clients.helm(
        "upgrade", "--install", "espha", ROOT / "charts" / "espha",
        "--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout", "3m",
    )  # fmt: skip
    clients.kubectl("label", "namespace", SYSTEM, spaces.RESTRICTED, "--overwrite")
    # The images keep their tag when they are built again.
    clients.kubectl("-n", SYSTEM, "rollout", "restart", "deployment/espha-operator")
    clients.kubectl("-n", SYSTEM, "rollout", "status", "deployment/espha-operator", "--timeout=3m")
    return SYSTEM


@pytest.fixture(scope="session")
def namespace(operator: str) -> Iterator[str]:
    """The namespace of the example deployment."""
    with spaces.made("test", spaces.RESTRICTED) as name:
        yield name


@pytest.fixture(scope="session")
def other_namespace(operator: str) -> Iterator[str]:
    """A namespace for small deployments that tests make and delete."""
    with spaces.made("test", spaces.RESTRICTED) as name:
        yield name


@pytest.fixture(scope="session")
def demo(namespace: str) -> str:
    """The namespace where the deployment `demo` of manifests/ gets rows, and is watched.

    Its engines are patient: on a busy machine one that is silent for a second is not dead.
    """
    things = list(yaml.safe_load_all((ROOT / "manifests/esp-ha.yaml").read_text(encoding="utf-8")))
    spec = next(one["spec"] for one in things if one["kind"] == "EspHaDeployment")
    spec["zookeeper"]["sessionTimeout"] = spaces.PATIENCE_MS
    clients.kubectl("-n", namespace, "apply", "-f", "-", stdin=yaml.safe_dump_all(things))
    spaces.wait_for(namespace, "Ready", "demo")
    checker = Checker(namespace, "demo")
    checker.start()
    wait_until(checker.runs, spaces.QUIET_S, "the checker watches", 1.0)
    clients.kubectl("-n", namespace, "apply", "-f", ROOT / "manifests/sample-producer.yaml")
    return namespace
