"""`espha verify` beside the demo: it watches the output topic from outside the deployment."""

import json
from typing import Any

from tools.offline_cluster import clients
from tools.offline_cluster.say import Failure

PYTHON = "python3"
_FAULTS = "/data/faults.txt"
# Run inside the pod by its own Python: there is no shell in between, and none is needed.
_NOTE_FAULT = """
import sys
with open(sys.argv[1], "a") as file:
    file.write(sys.argv[2] + "\\n")
"""


class Checker:
    """A pod that reads what manifests/esp-ha.yaml puts out, and compares it with the input."""

    def __init__(self, namespace: str, deployment: str) -> None:
        """Make nothing yet.

        Args:
            namespace: of the deployment, and of the pod.
            deployment: name of the EspHaDeployment.
        """
        self.watched = f"{deployment}-output-result-0"
        self._namespace = namespace
        self._deployment = deployment
        self._name = f"{deployment}-checker"

    def start(self) -> None:
        """Make the pod; the deployment has its pods already."""
        self._kubectl("apply", "-f", "-", stdin=json.dumps(self._pod()))

    def runs(self) -> bool:
        """Say whether it watches the output."""
        return self._phase() == "Running"

    def has_ended(self) -> bool:
        """Say whether it has compared; it does five seconds after the last row."""
        return self._phase() in ("Succeeded", "Failed")

    def note(self, fault: str) -> None:
        """Tell it what was done on purpose, as `SECONDS NAME`, seconds since 1970.

        Raises:
            Failure: it has ended; with its last words.
        """
        if not self.runs():
            raise Failure(f"the checker ended too early:\n{self._kubectl('logs', self._name)}")
        self._kubectl("exec", self._name, "--", PYTHON, "-c", _NOTE_FAULT, _FAULTS, fault)

    def report(self) -> dict[str, Any]:
        """Return what it found, as `espha verify --json` prints it.

        Raises:
            Failure: it ended without a report.
        """
        logs = self._kubectl("logs", self._name)
        for text in reversed(logs.splitlines()):
            if text.startswith("{"):
                return dict(json.loads(text))
        raise Failure(f"the checker ended without a report:\n{logs}")

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return clients.kubectl("-n", self._namespace, *arguments, stdin=stdin)

    def _phase(self) -> str:
        return self._kubectl("get", "pod", self._name, "-o", "jsonpath={.status.phase}").strip()

    def _spec(self, pod: str) -> dict[str, Any]:
        return dict(json.loads(self._kubectl("get", "pod", pod, "-o", "json"))["spec"])

    def _pod(self) -> dict[str, Any]:
        adapter = self._spec(self.watched)["containers"][0]
        environment = {each["name"]: each.get("value", "") for each in adapter["env"]}
        volumes = self._spec(f"{self._deployment}-engine-0")["volumes"]
        (model,) = (each["configMap"] for each in volumes if each["name"] == "config")
        arguments = [
            "verify", "--json", "--follow", "--until-idle", "5",
            "--bootstrap", environment["ESPHA_BOOTSTRAP"], "--prefix", environment["ESPHA_PREFIX"],
            "--sum-window", "Record_Counter:20:sum20", "--faults", _FAULTS,
            "--input-file", "/data/memory.csv", "--output-file", "/data/result.csv",
        ]  # fmt: skip
        container = {
            "name": "checker",
            "image": adapter["image"],
            "imagePullPolicy": "IfNotPresent",
            "args": arguments,
            "resources": {
                "requests": {"cpu": "50m", "memory": "64Mi"},
                "limits": {"memory": "512Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                {"name": "model", "mountPath": "/etc/espha", "readOnly": True},
                {"name": "data", "mountPath": "/data"},
                {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
            ],
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self._name, "labels": {"app.kubernetes.io/name": self._name}},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 10001,
                    "runAsGroup": 10001,
                    "fsGroup": 10001,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [container],
                "volumes": [
                    {"name": "model", "configMap": {"name": model["name"]}},
                    {"name": "data", "persistentVolumeClaim": {"claimName": "demo-data"}},
                    {"name": "tmp", "emptyDir": {}},
                ],
            },
        }
