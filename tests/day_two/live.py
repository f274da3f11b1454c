"""A deployment on the cluster that never stands still: rows flow in, and pods are watched."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubernetes import config
from kubernetes.client import CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from cluster.spaces import PATIENCE_MS
from day_two.watched import Watched
from espha.local.waiting import wait_until
from tools import ROOT
from tools.offline_cluster import clients, command

NAME = "demo"
PREFIX = "day2"
RATE = 25
DRIVER = "driver"
SOURCE = ROOT / "manifests" / "models" / "ha-project.xml"
SYSTEM = "espha-system"
"""Where the operator is."""
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
"""Volumes that may grow."""
PATIENT_ZOOKEEPER = {"replicas": 3, "tickTime": 200, "sessionTimeout": PATIENCE_MS}
PATIENT_KAFKA = {
    "replicas": 3,
    "config": {
        "broker.session.timeout.ms": "9000",
        "broker.heartbeat.interval.ms": "2000",
        "replica.lag.time.max.ms": "9000",
        "controller.quorum.fetch.timeout.ms": "4000",
        "controller.quorum.election.timeout.ms": "1000",
    },
}
"""Set for scarce processors, as docs/how-to/troubleshoot.md says: four nodes share two."""
STILL_S = 300.0
"""For longer than this nothing may stand still: three JVMs may start on two cores."""
_ENGINE_IMAGE = "espha/engine:0.1.0"
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}

FEED = """
import pathlib, sys, time
from confluent_kafka import Producer
bootstrap, topic, rate = sys.argv[1], sys.argv[2], int(sys.argv[3])
stop, count = pathlib.Path("/tmp/stop"), pathlib.Path("/tmp/sent")
producer = Producer({
    "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20,
    "max.in.flight": 1, "delivery.timeout.ms": 600000, "message.timeout.ms": 600000,
})
failed, waiting = [], 0
def told(error, _):
    global waiting
    waiting -= 1
    if error: failed.append(str(error))
number, due = 0, time.monotonic()
while not stop.exists() and not failed:
    producer.poll(0.02)
    due = max(due, time.monotonic() - 1)  # what slept for long does not make up for it
    if waiting: continue  # one request on its way, and no row behind it: see chaos/load.py
    while due < time.monotonic():
        line = f"I,N,,{number},{4000 + number % 7},{9000 - number % 5},{1700000000 + number}"
        producer.produce(topic, line.encode(), callback=told)
        number, due, waiting = number + 1, due + 1 / rate, waiting + 1
producer.flush(600)
count.write_text(str(number))
print(number, *failed[:1], flush=True)
while True: time.sleep(3600)
"""
"""Rows at a steady rate, each one once and in order, until /tmp/stop is there."""

COUNT = """
import json, sys
from confluent_kafka import Consumer, TopicPartition
bootstrap, *topics = sys.argv[1:]
seen = {}
for topic in topics:
    for level in ("read_committed", "read_uncommitted"):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count",
            "isolation.level": level, "enable.auto.commit": False, "enable.partition.eof": True})
        consumer.assign([TopicPartition(topic, 0, 0)])
        count = 0
        while True:
            message = consumer.poll(60)
            if message is None: sys.exit(f"{topic} has no end")
            if message.error(): break
            count += 1
        consumer.close()
        seen.setdefault(topic, []).append(count)
print(json.dumps(seen))
"""
"""How many records each topic has for a reader of what is committed, and of everything."""


class Live:
    """The deployment `demo` of a namespace, with some rows a second from a pod beside it."""

    def __init__(self, namespace: str) -> None:
        """Remember where it is."""
        self.namespace = namespace
        api = config.new_client_from_config(str(clients.kubeconfig()))
        # Waits look several times a second: a process of kubectl for each look would take a good
        # part of two cores.
        self._core, self._custom = CoreV1Api(api), CustomObjectsApi(api)
        self.bootstrap = f"{NAME}-kafka.{namespace}.svc:9092"
        self.output = f"{PREFIX}.HA_Project.cq.outbound.O"
        self.input = f"{PREFIX}.HA_Project.cq.memory.I"

    def kubectl(self, *arguments: str | Path, stdin: str | None = None, limit: float = 300) -> str:
        """Run kubectl in the namespace."""
        return clients.kubectl("-n", self.namespace, *arguments, stdin=stdin, timeout=limit)

    def deploy(self, **spec: Any) -> None:
        """Make the deployment, and wait until it is ready."""
        resource = {
            "apiVersion": "espha.dev/v1alpha1",
            "kind": "EspHaDeployment",
            "metadata": {"name": NAME},
            "spec": {
                "model": {"inline": SOURCE.read_text()},
                "topics": {"prefix": PREFIX, "retention": "unlimited"},
                "zookeeper": PATIENT_ZOOKEEPER,
                "kafka": PATIENT_KAFKA,
                "engines": {"replicas": 3},
                **spec,
            },
        }
        self.kubectl("apply", "-f", "-", stdin=json.dumps(resource))
        self.wait_ready()

    def feed(self) -> None:
        """Begin to publish rows."""
        model = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": DRIVER},
            "data": {"model.xml": SOURCE.read_text(), "feed.py": FEED, "count.py": COUNT},
        }
        self.kubectl("apply", "-f", "-", stdin=json.dumps(model))
        self.kubectl("apply", "-f", "-", stdin=json.dumps(self._driver()))
        self.kubectl("wait", "--for=condition=Ready", f"pod/{DRIVER}", "--timeout=3m")

    def _driver(self) -> dict[str, Any]:
        """Return a pod on the control plane, which nobody drains."""
        command = ["python3", "-u", "/etc/espha/feed.py", self.bootstrap, self.input, str(RATE)]
        container = {
            "name": DRIVER,
            "image": _ENGINE_IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "command": command,
            "securityContext": _RESTRICTED,
            "volumeMounts": [
                {"name": "files", "mountPath": "/etc/espha", "readOnly": True},
                {"name": "tmp", "mountPath": "/tmp"},
            ],
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": DRIVER},
            "spec": {
                "nodeName": clients.NODE,
                "tolerations": [{"operator": "Exists"}],
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": False,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 10001,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [container],
                "volumes": [
                    {"name": "files", "configMap": {"name": DRIVER}},
                    {"name": "tmp", "emptyDir": {}},
                ],
            },
        }

    def resource(self) -> dict[str, Any]:
        """Return the deployment's resource."""
        found: dict[str, Any] = self._custom.get_namespaced_custom_object(
            "espha.dev", "v1alpha1", self.namespace, "esphadeployments", NAME, _request_timeout=20
        )
        return found

    def status(self) -> dict[str, Any]:
        """Return its status."""
        return dict(self.resource().get("status") or {})

    @property
    def active(self) -> str:
        """The pod of the active engine; empty: there is none."""
        return str(self.status().get("active") or "")

    @property
    def take_overs(self) -> int:
        """How often an engine has taken over."""
        return int(self.status().get("failovers") or 0)

    def condition(self, kind: str) -> dict[str, Any]:
        """Return a condition; nothing where there is none of that kind yet."""
        listed = self.status().get("conditions", [])
        return next((one for one in listed if one["type"] == kind), {})

    def says(self) -> str:
        """Return what all conditions say."""
        return " ".join(one["message"] for one in self.status().get("conditions", []))

    def patch(self, spec: dict[str, Any]) -> None:
        """Change the spec."""
        change = json.dumps({"spec": spec})
        self.kubectl("patch", "espha", NAME, "--type=merge", "-p", change)

    def wait_ready(self) -> None:
        """Wait until the deployment is ready, in its present generation."""

        def ready() -> bool:
            found = self.resource()
            listed = (found.get("status") or {}).get("conditions", [])
            told = [one for one in listed if one["type"] == "Ready" and one["status"] == "True"]
            wanted = found["metadata"]["generation"]
            return any(one["observedGeneration"] == wanted for one in told)

        wait_until(ready, STILL_S, f"{NAME} is ready", 1.0, self._moves)

    def told(self, path: str, *what: str) -> str:
        """Return a part of objects, empty where there are none: `what` as for kubectl get."""
        return self.kubectl("get", *what, "--ignore-not-found", "-o", f"jsonpath={path}")

    def template_size(self, component: str) -> str:
        """Return the size of volumes that a StatefulSet asks for; empty while it is not there."""
        path = "{.spec.volumeClaimTemplates[0].spec.resources.requests.storage}"
        return self.told(path, "statefulset", f"{NAME}-{component}")

    def is_whole(self) -> bool:
        """Tell whether all servers serve, every copy is there, and all engines are in sync."""
        wanted = {"KafkaReady": "Serving", "ZooKeeperReady": "Serving", "ReplicasInSync": "InSync"}
        return all(self.condition(kind).get("reason") == why for kind, why in wanted.items())

    def is_ready(self, pod: str) -> bool:
        """Tell whether a pod is there, and ready."""
        return self.told('{.status.conditions[?(@.type=="Ready")].status}', "pod", pod) == "True"

    def kill_operator(self, when: Callable[[], bool], what: str) -> None:
        """Kill the operator in the middle of something; another one comes up by itself.

        Args:
            when: tells when it is in the middle.
            what: the same in words.
        """
        self.wait(when, what)
        chosen = ("-l", "app.kubernetes.io/name=espha-operator")
        clients.kubectl("-n", SYSTEM, "delete", "pods", *chosen, "--force", "--grace-period=0")

    def wait(self, holds: Any, what: str) -> None:
        """Wait until something holds; at the latest until nothing has moved for long."""
        wait_until(holds, STILL_S, what, 0.5, self._moves)

    def _moves(self) -> object:
        """Return what changes while a deployment comes up or is rolled out."""
        try:
            pods = [
                (one.metadata.uid, [each.status for each in one.status.conditions or []])
                for one in self._pods()
            ]
            return self.status().get("conditions"), pods
        except (ApiException, HTTPError):
            return None

    def events(self, reason: str) -> list[str]:
        """Return the messages of the deployment's Events of one reason, in order."""
        chosen = f"involvedObject.name={NAME},reason={reason}"
        listed = self.kubectl(
            "get", "events", "--field-selector", chosen, "--sort-by=.metadata.creationTimestamp",
            "-o", "json",
        )  # fmt: skip
        return [one["message"] for one in json.loads(listed)["items"]]

    def watch(self, **sets: int) -> Watched:
        """Watch the pods of these components, of which so many are wanted."""
        return Watched(self.namespace, {f"{NAME}-{one}": count for one, count in sets.items()})

    def pods(self) -> dict[str, tuple[str, str]]:
        """Return uid and node of each pod of the deployment."""
        chosen = f"app.kubernetes.io/instance={NAME}"
        return {
            one.metadata.name: (one.metadata.uid, one.spec.node_name or "")
            for one in self._pods(label_selector=chosen)
        }

    def _pods(self, **chosen: str) -> list[Any]:
        listed = self._core.list_namespaced_pod(self.namespace, _request_timeout=20, **chosen)
        return list(listed.items)

    def signal(self, pod: str, number: str) -> None:
        """Send a signal to all processes of a pod, from its node."""
        node = self.pods()[pod][1]
        script = (
            'for file in $(grep -l "HOSTNAME=$0" /proc/[0-9]*/environ 2>/dev/null); do '
            'pid=${file#/proc/}; kill "-$1" "${pid%/environ}"; done'
        )
        command.run("docker", "exec", node, "sh", "-c", script, pod, number)

    def stop(self) -> int:
        """Stop the rows; return how many there were, all of which Kafka has."""
        self.kubectl("exec", DRIVER, "--", "python3", "-c", "open('/tmp/stop', 'w')")

        def said() -> str:
            """Return the last line; what Kafka's client says of brokers that go stands above."""
            return (self.kubectl("logs", DRIVER).splitlines() or [""])[-1]

        def all_sent() -> bool:
            return said()[:1].isdecimal()

        wait_until(all_sent, STILL_S, "the last row is sent", 0.5)
        assert said().isdecimal(), said()
        return int(said())

    def verify(self) -> dict[str, Any]:
        """Stop the rows, and return what `espha verify` says of all that came out."""
        sent = self.stop()
        arguments = [
            "verify", "--json", "--follow", "--until-idle", "5", "--bootstrap", self.bootstrap,
            "--prefix", PREFIX, "--model", "/etc/espha/model.xml",
            "--sum-window", "Record_Counter:20:sum20",
        ]  # fmt: skip
        said = self.kubectl("exec", DRIVER, "--", "espha", *arguments, limit=600)
        report: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
        return {**report, "sent": sent}

    def counts(self) -> dict[str, list[int]]:
        """Return how many outputs and order records are committed, and how many there are."""
        order = f"{PREFIX}.M"
        asked = ("python3", "/etc/espha/count.py", self.bootstrap, self.output, order)
        found: dict[str, list[int]] = json.loads(self.kubectl("exec", DRIVER, "--", *asked))
        return {"output": found[self.output], "order": found[order]}

    def restarts(self) -> Counter[str]:
        """Return how often containers of each pod were restarted in place."""
        listed = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
        return Counter(
            {
                one["metadata"]["name"]: sum(
                    each["restartCount"] for each in one["status"].get("containerStatuses", [])
                )
                for one in listed
            }
        )


def nodes() -> list[str]:
    """Return the workers."""
    asked = ("get", "nodes", "-l", "!node-role.kubernetes.io/control-plane", "-o", "name")
    return [name.removeprefix("node/") for name in clients.kubectl(*asked).split()]


def drain(node: str) -> None:
    """Drain a node as people do; it can be used again at once."""
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=5m")
    try:
        clients.kubectl("drain", node, *options, timeout=320)
    finally:
        clients.kubectl("uncordon", node)


def retag(tag: str) -> dict[str, str]:
    """Give the images of the workloads one more name on every node; return these by component."""
    new = {}
    for component, name in (("engines", "engine"), ("kafka", "kafka"), ("zookeeper", "zookeeper")):
        old = f"docker.io/espha/{name}:0.1.0"
        new[component] = f"espha/{name}:{tag}"
        for node in nodes():
            tags = ("ctr", "-n", "k8s.io", "images", "tag", "--force", old)
            command.run("docker", "exec", node, *tags, f"docker.io/{new[component]}")
    return new
