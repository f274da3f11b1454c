"""Fifty deployments, and one of them poisonous: what the operator costs, and who notices.

A real API server, and a real Kafka of one broker for all; no pod runs: stand-ins answer for the
engines, on addresses of the loopback device, so this needs an operator outside of the cluster.
ESPHA_BENCH_S: seconds of each of the two parts, without poison and with it (default 60).
ESPHA_BENCH_KUBECONFIG: of another API server than the local cluster's; it needs the CRD and no
running operator, and no nodes.
"""

import itertools
import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from rich.console import Console
from rich.table import Table

from espha.model import model_digest
from espha.reader import read_project
from support.servers import LASTING_BROKERS, Kafka, wait_until
from tools.offline_cluster import clients

COUNT, ENGINES, NAMESPACES = int(os.environ.get("ESPHA_BENCH_COUNT", "50")), 3, 10
SECONDS = float(os.environ.get("ESPHA_BENCH_S", "60"))
ROOT = Path(__file__).parents[2]
MODEL = """<project name="small"><contqueries><contquery name="cq"><windows>
<window-source name="in" insert-only="true"><schema><fields>
<field name="id" type="int64" key="true"/></fields></schema></window-source>
</windows></contquery></contqueries></project>"""
POISON = ("drip", "flood", "lie")
GROUP = ("espha.dev", "v1alpha1")
RUNNING = "app.kubernetes.io/name=espha-operator"
GROWTH = 30
"""MiB that memory may grow in a part."""
LONGER = 2.0
"""Times as long as without the poison pauses between steps of the others may be, p99."""


class Scene:
    """An API server with deployments, whose pods are played."""

    def __init__(self, kubeconfig: str, folder: Path, bootstrap: str) -> None:
        """Connect; `bootstrap` is the address of a Kafka."""
        self.kubeconfig, self.folder, self.bootstrap = kubeconfig, folder, bootstrap
        api = config.new_client_from_config(kubeconfig)
        self.core, self.custom = client.CoreV1Api(api), client.CustomObjectsApi(api)
        mark = uuid.uuid4().hex[:5]
        self.namespaces = [f"safe-{mark}-{number}" for number in range(NAMESPACES)]
        self.names = [(self.namespaces[n % NAMESPACES], f"d{n:02}") for n in range(COUNT)]
        self.programs: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> None:
        """Run a part of fifty.py beside."""
        paths = os.pathsep.join(str(ROOT / one) for one in ("engine", "operator", "tests", "."))
        variables = {"KUBECONFIG": self.kubeconfig, "PYTHONPATH": paths}
        variables |= {"ESPHA_NAMESPACE": self.namespaces[0]}
        variables |= {"ESPHA_WATCH_NAMESPACES": ",".join(self.namespaces)}
        # As the chart has it: an arena for each of 200 threads keeps what it once had.
        variables |= {"MALLOC_ARENA_MAX": "2"}
        log = (self.folder / f"{arguments[0]}.log").open("wb")
        command = [sys.executable, str(Path(__file__).with_name("fifty.py")), *arguments]
        self.programs.append(
            subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log)
        )

    def make(self) -> None:
        """Make namespaces and deployments."""
        for namespace in self.namespaces:
            self.core.create_namespace({"metadata": {"name": namespace}})
        for namespace, name in self.names:
            spec = {
                "model": {"inline": MODEL},
                "engines": {"replicas": ENGINES, "pod": {"nodeSelector": {"no": "node"}}},
                "kafka": {"external": {"bootstrapServers": [self.bootstrap]}},
                "zookeeper": {"external": {"servers": ["zookeeper.invalid:2181"]}},
                "topics": {
                    "prefix": f"{namespace}-{name}",
                    "replicationFactor": 1,
                    "minInSyncReplicas": 1,
                },
            }
            body = {"apiVersion": "/".join(GROUP), "kind": "EspHaDeployment", "spec": spec}
            body["metadata"] = {"name": name}
            self.custom.create_namespaced_custom_object(*GROUP, namespace, "esphadeployments", body)

    def play_pods(self) -> None:
        """Give each engine's pod an address where somebody answers; call them running and ready."""
        digest = model_digest(read_project(MODEL))
        lines = []
        for number, (namespace, name) in enumerate(self.names):
            for ordinal in range(ENGINES):
                address = f"127.9.{number + 1}.{ordinal + 1}"
                poison = POISON[ordinal % len(POISON)] if number == 0 else "none"
                lines.append(f"{address} {name}-engine-{ordinal} {digest} {poison}")
                self._run_pod(namespace, f"{name}-engine-{ordinal}", address)
        file = self.folder / "pods"
        file.write_text("\n".join(lines))
        self.start("pods", str(file))

    def _run_pod(self, namespace: str, name: str, address: str) -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        change = {"status": {**status, "conditions": [ready]}}
        self.core.patch_namespaced_pod_status(name, namespace, change)

    def pods(self) -> int:
        """Return how many pods there are."""
        listed = (self.core.list_namespaced_pod(one).items for one in self.namespaces)
        return sum(len(items) for items in listed)

    def ready(self) -> int:
        """Return how many deployments are ready."""
        found = 0
        for namespace in self.namespaces:
            listed = self.custom.list_namespaced_custom_object(
                *GROUP, namespace, "esphadeployments"
            )
            found += sum(one.get("status", {}).get("phase") == "Ready" for one in listed["items"])
        return found

    def lines(self) -> list[dict[str, Any]]:
        """Return what the operator has written down so far."""
        file = self.folder / "operator"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def end(self) -> None:
        """Stop what was started, and delete what was made."""
        for program in self.programs:
            program.terminate()
        for program in self.programs:
            program.wait(30)
        for namespace in self.namespaces:
            self.core.delete_namespace(namespace)


def operators(kubeconfig: str) -> list[str]:
    """Return the pods of operators in the cluster."""
    core = client.CoreV1Api(config.new_client_from_config(kubeconfig))
    listed = core.list_pod_for_all_namespaces(label_selector=RUNNING).items
    return [f"{one.metadata.namespace}/{one.metadata.name}" for one in listed]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    given = os.environ.get("ESPHA_BENCH_KUBECONFIG") or str(clients.kubeconfig())
    if there := operators(given):
        pytest.fail(
            f"An operator runs, and would take the deployments for its own ({', '.join(there)}). "
            "End it first: kubectl -n espha-system scale deployment/espha-operator --replicas=0"
        )
    kafka = Kafka(tmp_path, java=LASTING_BROKERS)
    try:
        kafka.start()
        made = Scene(given, tmp_path, kafka.bootstrap)
        yield made
        made.end()
    finally:
        kafka.stop()


@pytest.mark.timeout(2 * SECONDS + 600)
def test_fifty_deployments(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.make()
    began = time.monotonic()
    scene.start("operator", str(scene.folder / "operator"))
    stands(lambda: scene.pods() == COUNT * ENGINES, "all pods are made", scene.pods)
    scene.play_pods()
    stands(lambda: scene.ready() == COUNT, "all deployments are ready", scene.ready)
    until_ready = time.monotonic() - began
    time.sleep(60)  # the last words of the start
    parts = {"nothing happens": part(scene)}
    (scene.folder / "pods.poison").touch()
    parts["one is poisonous"] = part(scene)
    report(parts, until_ready, "/".join(scene.names[0]), capsys)
    (scene.folder / "pods.poison").unlink()
    assert rate(parts["nothing happens"]) / COUNT < 0.2
    # The poisonous one is not idle, but has its limits.
    assert rate(parts["one is poisonous"]) < 0.2 * COUNT + 2
    for name, lines in parts.items():
        assert max(one["rss"] for one in lines) < 400, name
        assert growth(lines) < GROWTH, f"{name}: memory has grown by {growth(lines)} MiB"
    poisonous = "/".join(scene.names[0])
    usual, beside = (quantiles(pauses(one, poisonous), n=100)[98] for one in parts.values())
    assert beside < LONGER * usual, "others wait"
    healthy = {f"{one}/{other}" for one, other in scene.names} - {poisonous}
    assert {name for name, _, _ in steps(parts["one is poisonous"])} >= healthy
    stands(lambda: scene.ready() >= COUNT - 1, "all others are ready", scene.ready)


def stands(holds: Callable[[], bool], what: str, moved: Callable[[], object]) -> None:
    """Wait as long as something moves."""
    wait_until(holds, 240, what, 1.0, moved)


def part(scene: Scene) -> list[dict[str, Any]]:
    """Return what the operator writes down in the time of one part."""
    before = len(scene.lines())
    time.sleep(SECONDS)
    return scene.lines()[before:]


def steps(lines: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """Return all steps: whose, when they began, how long they took."""
    return [tuple(one) for line in lines for one in line["steps"]]


def rate(lines: list[dict[str, Any]]) -> float:
    """Return requests a second."""
    return float(sum(requests(lines).values()) / (lines[-1]["at"] - lines[0]["at"]))


def requests(lines: list[dict[str, Any]]) -> Counter[str]:
    """Return how many requests of each kind were made."""
    first, last = (
        Counter({f"{verb} {kind}": count for verb, kind, count in line["requests"]})
        for line in (lines[0], lines[-1])
    )
    return last - first


def report(
    parts: dict[str, list[dict[str, Any]]],
    until_ready: float,
    poisonous: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Print what was measured."""
    table = Table(title=f"{COUNT} deployments, all ready after {until_ready:.0f} s")
    for column in ("", *parts):
        table.add_column(column)
    rows: dict[str, Callable[[list[dict[str, Any]]], str]] = {
        "seconds": lambda lines: f"{lines[-1]['at'] - lines[0]['at']:.0f}",
        "requests/s a deployment": lambda lines: f"{rate(lines) / COUNT:.3f}",
        "of these": lambda lines: yaml.safe_dump(dict(requests(lines).most_common(8))),
        "step, others, ms (median, p99, max)": lambda lines: took(lines, poisonous, others=True),
        "step, poisonous, ms": lambda lines: took(lines, poisonous, others=False),
        "between steps, others, s (median, p99, max)": lambda lines: spread(
            pauses(lines, poisonous)
        ),
        "memory, MiB (first, last, most)": lambda lines: (
            f"{lines[0]['rss']}, {lines[-1]['rss']}, {max(one['rss'] for one in lines)}"
        ),
        "growth, MiB": lambda lines: f"{growth(lines):+d}",
        "threads": lambda lines: str(max(one["threads"] for one in lines)),
        "processor": lambda lines: (
            f"{(lines[-1]['cpu'] - lines[0]['cpu']) / (lines[-1]['at'] - lines[0]['at']):.2f}"
        ),
    }
    for name, of in rows.items():
        table.add_row(name, *(of(lines) for lines in parts.values()))
    with capsys.disabled():
        Console(width=140).print(table)


def took(lines: list[dict[str, Any]], poisonous: str, *, others: bool) -> str:
    """Return how long steps took."""
    return spread([1000 * took for name, _, took in steps(lines) if (name != poisonous) == others])


def growth(lines: list[dict[str, Any]]) -> int:
    """Return by how many MiB memory has grown."""
    return int(lines[-1]["rss"] - lines[0]["rss"])


def pauses(lines: list[dict[str, Any]], poisonous: str) -> list[float]:
    """Return how long there was between the beginnings of two steps of one of the others."""
    began: dict[str, list[float]] = {}
    for name, at, _ in steps(lines):
        if name != poisonous:
            began.setdefault(name, []).append(at)
    pairs = (itertools.pairwise(one) for one in map(sorted, began.values()))
    return [later - earlier for pair in pairs for earlier, later in pair]


def spread(values: list[float]) -> str:
    """Return median, 99th percentile and the largest."""
    if len(values) < 2:
        return "-"
    return f"{median(values):.1f}, {quantiles(values, n=100)[98]:.1f}, {max(values):.1f}"
