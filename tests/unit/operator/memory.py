"""An API server in memory, and a reconciler that plays on it."""

import copy
import json
from base64 import b64encode
from concurrent.futures import Future
from typing import Any

from kubernetes.client.exceptions import ApiException

from espha_operator.api.deployment import Deployment
from espha_operator.api.images import Images
from espha_operator.reconcile.order_logs import OrderLogs
from espha_operator.reconcile.reconciler import Reconciler
from espha_operator.reconcile.tokens import Tokens
from espha_operator.reconcile.upgrades import Upgrader
from espha_operator.resources import meta
from espha_operator.status.facts import TopicFacts
from espha_operator.status.storage import DiskFacts
from unit.operator import samples

Object = dict[str, Any]
# `MemoryCluster.list` hides the type in annotations.
Objects = list[Object]
TOKEN = meta.token_name(samples.deployment())


def refusal(status: int, message: str) -> ApiException:
    """Return what the API server says when it refuses."""
    error = ApiException(status=status, reason="Refused")
    error.body = json.dumps({"message": message})
    return error


def at_once(ask: Any, *arguments: Any, **named: Any) -> Future[TopicFacts]:
    """Ask in this thread."""
    answer: Future[TopicFacts] = Future()
    answer.set_result(ask(*arguments, **named))
    return answer


class MemoryCluster:
    """Keeps objects by kind and name; an applied StatefulSet has all its pods ready at once."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.writes: list[str] = []
        self.asked: list[str] = []
        """What was not read from the store."""
        self.refuses: dict[str, ApiException] = {}
        """What applies are answered with, by an object's name; others by `patch NAME`, …"""
        self.held = False
        """Pods stay as they are until they are rolled."""
        self.gone: set[str] = set()
        """Deployments that have gone, which no watch has said."""

    @property
    def store(self) -> "MemoryCluster":
        """What the watches have brought."""
        return self

    def read(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None, as the API server has it."""
        self.asked.append(f"{kind} {name}")
        return self.get(kind, namespace, name)

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None."""
        return copy.deepcopy(self.objects.get((kind, name)))

    def list(self, kind: str, namespace: str, selector: str) -> list[Object]:
        """Return all objects of a kind."""
        return [copy.deepcopy(one) for (its, _), one in self.objects.items() if its == kind]

    def list_all(self, kind: str, namespace: str, selector: str) -> tuple[Objects, str]:
        """Return all objects of a kind, as the API server has them."""
        found = self.list(kind, namespace, selector)
        return [one for one in found if one["metadata"]["name"] not in self.gone], "1"

    def apply(self, wanted: Object) -> Object:
        """Apply an object; a StatefulSet's pods follow at once, unless they are `held`."""
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        self.writes.append(f"{kind} {name}")
        if name in self.refuses:
            raise self.refuses[name]
        made = copy.deepcopy(wanted)
        made["metadata"]["uid"] = f"{kind} {name}"
        there = self.objects.get((kind, name), {"metadata": {"generation": 0}})
        changed = there.get("spec") != made.get("spec")
        made["metadata"]["generation"] = there["metadata"]["generation"] + changed
        if "status" in there:
            made["status"] = there["status"]
        self.objects[kind, name] = made
        if kind == "StatefulSet" and not self.held:
            self.roll(name)
        return copy.deepcopy(self.objects[kind, name])

    def roll(self, name: str, count: int | None = None) -> None:
        """Bring so many pods of a StatefulSet up to date, all of them without a number."""
        made = self.objects["StatefulSet", name]
        wanted = made["spec"]["replicas"]
        made["status"] = {
            "observedGeneration": made["metadata"]["generation"],
            "replicas": wanted,
            "readyReplicas": wanted,
            "updatedReplicas": wanted if count is None else count,
        }
        for ordinal in range(wanted)[:count]:
            self._pod(f"{name}-{ordinal}", made["spec"]["template"])

    def create(self, wanted: Object) -> None:
        """Make an object that must not exist yet."""
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        self.writes.append(f"create {kind} {name}")
        if (kind, name) in self.objects:
            raise refusal(409, f"{kind} {name} already exists")
        made = copy.deepcopy(wanted)
        texts = made.pop("stringData", {})
        made["data"] = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
        self.objects[kind, name] = made

    def apply_status(self, namespace: str, name: str, status: Object) -> Object:
        """Set a deployment's status."""
        self.writes.append("status")
        if ("EspHaDeployment", name) not in self.objects or name in self.gone:
            raise refusal(404, f'esphadeployments.espha.dev "{name}" not found')
        self.objects["EspHaDeployment", name]["status"] = status
        return self.objects["EspHaDeployment", name]

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        """Merge labels, annotations and data, and a number of replicas."""
        self.writes.append(f"patch {kind} {name}")
        if f"patch {name}" in self.refuses:
            raise self.refuses[f"patch {name}"]
        if "data" in change:
            self.objects[kind, name]["data"] |= change["data"]
            return
        if "spec" in change:
            self.objects[kind, name]["spec"] |= change["spec"]
            self.roll(name)
            return
        meta = self.objects[kind, name]["metadata"]
        for group in ("labels", "annotations"):
            for key, value in change["metadata"].get(group, {}).items():
                if value is None:
                    meta[group].pop(key)
                else:
                    meta[group][key] = value

    def delete(self, kind: str, namespace: str, name: str, uid: str = "", **_: Any) -> None:
        """Delete an object."""
        self.writes.append(f"delete {kind} {name}")
        if f"delete {name}" in self.refuses:
            raise self.refuses[f"delete {name}"]
        del self.objects[kind, name]

    def _pod(self, name: str, template: Object) -> None:
        """Make a pod of a template, in the place of one that was made of another."""
        spec, labels = copy.deepcopy(template["spec"]), dict(template["metadata"]["labels"])
        there = self.objects.get(("Pod", name))
        if there is None or there["spec"] != spec:
            self.objects["Pod", name] = {
                "metadata": {
                    "name": name,
                    "uid": f"Pod {name}",
                    "labels": labels,
                    "ownerReferences": [{"uid": f"StatefulSet {name.rpartition('-')[0]}"}],
                },
                "spec": spec,
                "status": {"podIP": "10.0.0.1", "phase": "Running"},
            }


class Keeper:
    """A Kafka whose topics are all there."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def ensure(self, *_: Any, **__: Any) -> TopicFacts:
        """Find nothing amiss."""
        return TopicFacts(brokers=3)


class Disks:
    """Volumes of which nothing is to be said."""

    known = DiskFacts()

    def __init__(self, *_: Any) -> None:
        """Take what the real one takes."""

    def look(self, *_: Any) -> None:
        """Look at nothing."""

    def follow(self, *_: Any) -> None:
        """Follow no request."""

    def fit(self, _: Deployment, wanted: list[Object]) -> tuple[list[Object], frozenset[str], str]:
        """Change nothing."""
        return wanted, frozenset(), ""


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Play(Reconciler):
    """A reconciler with its cluster and clock at hand."""

    def __init__(
        self, cluster: MemoryCluster, namespace: str = "shop", upgrader: Upgrader | None = None
    ) -> None:
        self.clock, self.cluster = Clock(), cluster
        self.order_logs = OrderLogs(self.clock)
        self.let_gone: list[str] = []
        """What has been let go of, by uid."""
        super().__init__(
            cluster,  # type: ignore[arg-type]
            namespace,
            "demo",
            Images(),
            self.clock,
            uid="uid-1",
            tokens=Tokens(cluster, "system"),
            order_logs=self.order_logs,
            upgrader=upgrader or Upgrader(Images()),
            gone=self.let_go,
        )

    def let_go(self) -> None:
        """Forget the deployment, as handlers do."""
        self.let_gone.append("uid-1")
        there = self.cluster.objects.get(("EspHaDeployment", "demo"))
        if there and there["metadata"]["uid"] == "uid-1":
            del self.cluster.objects["EspHaDeployment", "demo"]

    def until_quiet(self) -> None:
        """Step until nothing is written any more."""
        for _ in range(20):
            self.cluster.writes.clear()
            self.clock.now += 3.1
            self.step()
            if not self.cluster.writes:
                return
        raise AssertionError(f"still writing: {self.cluster.writes}")


def status(cluster: MemoryCluster) -> Object:
    """Return the deployment's status."""
    found: Object = cluster.objects["EspHaDeployment", "demo"]["status"]
    return found
