"""The demo: a deployment on real input, its active engine killed twice, and the proof.

`python -m tools.demo` needs the local cluster with the images in it; `make demo` sees to both.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from espha.local.outcome import complaint, table
from tools import ROOT
from tools.clean import DEMO, delete
from tools.demo_checker import PYTHON, Checker
from tools.offline_cluster import clients, command
from tools.offline_cluster import wait as waiting
from tools.offline_cluster.say import Failure, line, program, step
from tools.stolen import QUIET, Stolen

SYSTEM = "espha-system"
NAMESPACE = os.environ.get("ESPHA_DEMO_NAMESPACE", "espha-demo")
NAME = "demo"
CHECKER = Checker(NAMESPACE, NAME)
ENOUGH_ROWS = 100
POLL_SECONDS = 1.0  # each look is a kubectl process, and two cores have other work

# Run inside pods by their own Python: there is no shell in between, and none is needed.
KILL_ENGINE = """
import contextlib, os, pathlib, signal, time
for entry in pathlib.Path("/proc").glob("[0-9]*"):
    with contextlib.suppress(FileNotFoundError):
        if (entry / "comm").read_text().strip() == "espha-engine":
            now = time.time()
            os.kill(int(entry.name), signal.SIGKILL)
            print(now)
"""


def main() -> None:
    """Run the demo from its beginning; what an earlier one left is removed."""
    began = time.monotonic()
    earlier()  # refuse somebody else's namespace before anything is touched
    install()
    clean()
    deploy()
    start_input()
    show()
    stolen = Stolen()
    kill("pod of the active engine deleted by force", delete_active)
    kill("process of the active engine killed with SIGKILL", kill_process)
    show()
    share = stolen.share()
    report = finish()
    conclude(report, time.monotonic() - began, share)


def kubectl(*arguments: str | Path, stdin: str | None = None, timeout: float = 300) -> str:
    """Run kubectl in the demo's namespace."""
    return clients.kubectl("-n", NAMESPACE, *arguments, stdin=stdin, timeout=timeout)


def wait(what: str, condition: Callable[[], bool], timeout: float) -> None:
    """Wait until a condition holds.

    Raises:
        Failure: it does not in time.
    """
    with step(what):
        if not waiting.until(condition, timeout, POLL_SECONDS):
            raise Failure(f"{what}: not within {timeout:.0f} s\n{overview()}")


def overview() -> str:
    """Return the pods and the deployment as kubectl shows them, for a failure's text."""
    shown = [["get", "espha"], ["get", "pods"], ["get", "events", "--sort-by=.lastTimestamp"]]
    texts = []
    for arguments in shown:
        try:
            texts.append("\n".join(kubectl(*arguments).splitlines()[-15:]))
        except Failure as failure:
            texts.append(str(failure))
    return "\n".join(texts)


def install() -> None:
    """Install the operator by its chart."""
    had_one = command.works(
        clients.binaries() / "helm", "--kubeconfig", clients.kubeconfig(), "-n", SYSTEM, "status",
        "espha",
    )  # fmt: skip
    with step("installing the operator with Helm"):
        clients.helm(
            "upgrade", "--install", "espha", ROOT / "charts" / "espha",
            "--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout", "3m",
        )  # fmt: skip
        if had_one:  # its image has the same tag, and may have another content
            clients.kubectl("-n", SYSTEM, "rollout", "restart", "deployment")
            clients.kubectl("-n", SYSTEM, "rollout", "status", "deployment", "--timeout", "3m")


def earlier() -> bool:
    """Say whether an earlier demo is there.

    Raises:
        Failure: a namespace of this name belongs to somebody else.
    """
    found = clients.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "json")
    if not found.strip():
        return False
    if DEMO not in json.loads(found)["metadata"].get("labels", {}):
        raise Failure(
            f"the namespace {NAMESPACE} exists and is not of an earlier demo; "
            "set ESPHA_DEMO_NAMESPACE to another name"
        )
    return True


def clean() -> None:
    """Remove what an earlier demo left, and make the namespace."""
    if earlier():
        with step("removing the earlier demo"):
            kubectl("delete", "espha", "--all", "--timeout", "3m")
            delete([f"namespace/{NAMESPACE}"])
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": {DEMO: "yes", "pod-security.kubernetes.io/enforce": "restricted"},
        },
    }
    clients.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))


def deployment() -> dict[str, Any]:
    """Return the EspHaDeployment."""
    return dict(json.loads(kubectl("get", "espha", NAME, "-o", "json")))


def status() -> dict[str, Any]:
    """Return the status of the EspHaDeployment."""
    return dict(deployment().get("status", {}))


def deploy() -> None:
    """Apply the example and shows the conditions as they come true."""
    kubectl("apply", "-f", ROOT / "manifests" / "esp-ha.yaml")
    said: set[str] = set()

    def ready() -> bool:
        conditions = status().get("conditions", [])
        for each in conditions:
            if each["status"] == "True" and each["type"] not in said:
                said.add(each["type"])
                line(f"  {each['type']}: {each['message']}")
        refused = [c for c in conditions if c["type"] == "ModelValid" and c["status"] == "False"]
        if refused:
            raise Failure(f"the model is refused: {refused[0]['message']}")
        return "Ready" in said

    wait("Kafka, ZooKeeper, three engines and the adapters come up", ready, 600)


def start_input() -> None:
    """Start the checker, then the producer, and wait until rows reach the result file."""
    CHECKER.start()
    wait("the checker starts to watch the output", CHECKER.runs, 120)
    kubectl("apply", "-f", ROOT / "manifests" / "sample-producer.yaml")
    wait(
        f"{ENOUGH_ROWS} rows of this machine's memory figures reach the result file",
        lambda: rows_written() >= ENOUGH_ROWS,
        180,
    )


def rows_written() -> int:
    """Return how many rows the output adapter has written since it started; 0: no answer."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{CHECKER.watched}:8080/proxy/status"
    try:
        return int(json.loads(clients.kubectl("get", "--raw", path)).get("rows", 0))
    except (Failure, ValueError):
        return 0


def show() -> None:
    """Print what a user sees."""
    line("kubectl get espha")
    print(kubectl("get", "espha"), flush=True)


def kill(name: str, how: Callable[[str], float]) -> None:
    """Kill the active engine in one way, and wait until another one leads and all are back."""
    old = status()
    active, failovers = old.get("active", ""), old.get("failovers", 0)
    before = rows_written()
    moment = how(active)
    line(f"{name}: {active}")
    CHECKER.note(f"{moment:.3f} {name}")

    def recovered() -> bool:
        now = status()
        return (
            now.get("phase") == "Ready"
            and now.get("failovers", 0) > failovers
            and now.get("engines") == old.get("engines")
            and rows_written() > before
        )

    wait("another engine leads, and all are in sync again", recovered, 240)
    line(f"active: {status().get('active')} (before: {active})")


def delete_active(pod: str) -> float:
    """Delete the pod without any grace; return the moment (seconds since 1970)."""
    moment = time.time()
    kubectl("delete", "pod", pod, "--force", "--grace-period=0")
    return moment


def kill_process(pod: str) -> float:
    """Kill the engine process; return the moment.

    Raises:
        Failure: the pod has no such process.
    """
    printed = kubectl("exec", pod, "--", PYTHON, "-c", KILL_ENGINE).split()
    if not printed:
        raise Failure(f"{pod}: there is no engine process to kill")
    return float(printed[0])


def finish() -> dict[str, Any]:
    """Stop the input, wait until all of it has arrived, and return the checker's report.

    Raises:
        Failure: the checker ended without one.
    """
    kubectl("scale", "deployment", "memory-producer", "--replicas=0")
    kubectl("wait", "pod", "-l", "app.kubernetes.io/name=memory-producer",
            "--for=delete", "--timeout=60s")  # fmt: skip
    wait("everything arrives, and the checker compares", CHECKER.has_ended, 180)
    return CHECKER.report()


def conclude(report: dict[str, Any], seconds: float, stolen: float) -> None:
    """Print the table.

    Args:
        report: of the checker.
        seconds: how long the demo took.
        stolen: share of the processor time wanted that the host has kept from this machine.

    Raises:
        Failure: something was lost, doubled, out of order or wrong.
    """
    Console().print(table(report))
    line(f"without faults a row comes every 100 ms; the demo took {seconds:.0f} s")
    if stolen > QUIET:
        line(
            f"the host of this machine kept {stolen:.0%} of the processor time wanted for others; "
            "the gaps tell of that, too"
        )
    bad = complaint(report)
    if bad:
        raise Failure(bad)


if __name__ == "__main__":
    program(main)
