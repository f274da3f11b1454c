"""An API server in memory, and a reconciler that plays on it."""

import copy
from base64 import b64encode
from typing import Any

from espha_operator.api.images import Images
from espha_operator.reconcile.reconciler import Reconciler
from espha_operator.status.facts import TopicFacts

Object = dict[str, Any]


class MemoryCluster:
    """Keeps objects by kind and name; an applied StatefulSet has all its pods ready at once."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.writes: list[str] = []
        self.held = False
        """Pods stay as they are until they are rolled."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None."""
        return copy.deepcopy(self.objects.get((kind, name)))

    def list(self, kind: str, namespace: str, selector: str) -> list[Object]:
        """Return all objects of a kind."""
        return [copy.deepcopy(one) for (its, _), one in self.objects.items() if its == kind]

    def apply(self, wanted: Object) -> None:
        """Apply an object; a StatefulSet's pods follow at once, unless they are `held`."""
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        self.writes.append(f"{kind} {name}")
        made = copy.deepcopy(wanted)
        there = self.objects.get((kind, name), {"metadata": {"generation": 0}})
        changed = there.get("spec") != made.get("spec")
        made["metadata"]["generation"] = there["metadata"]["generation"] + changed
        if "status" in there:
            made["status"] = there["status"]
        self.objects[kind, name] = made
        if kind == "StatefulSet" and not self.held:
            self.roll(name)

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
        assert (kind, name) not in self.objects
        made = copy.deepcopy(wanted)
        texts = made.pop("stringData", {})
        made["data"] = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
        self.objects[kind, name] = made

    def apply_status(self, namespace: str, name: str, status: Object) -> None:
        """Set a deployment's status."""
        self.writes.append("status")
        self.objects["EspHaDeployment", name]["status"] = status

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        """Merge labels and annotations."""
        self.writes.append(f"patch {kind} {name}")
        meta = self.objects[kind, name]["metadata"]
        for group in ("labels", "annotations"):
            for key, value in change["metadata"].get(group, {}).items():
                if value is None:
                    meta[group].pop(key)
                else:
                    meta[group][key] = value

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object."""
        self.writes.append(f"delete {kind} {name}")
        del self.objects[kind, name]

    def _pod(self, name: str, template: Object) -> None:
        """Make a pod of a template, in the place of one that was made of another."""
        spec, labels = copy.deepcopy(template["spec"]), dict(template["metadata"]["labels"])
        there = self.objects.get(("Pod", name))
        if there is None or there["spec"] != spec:
            self.objects["Pod", name] = {
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
                "status": {"podIP": "10.0.0.1"},
            }


class Keeper:
    """A Kafka whose topics are all there."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def ensure(self, *_: Any, **__: Any) -> TopicFacts:
        """Find nothing amiss."""
        return TopicFacts(brokers=3)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Play(Reconciler):
    """A reconciler with its cluster and clock at hand."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.clock, self.cluster = Clock(), cluster
        super().__init__(cluster, "shop", "demo", Images(), self.clock)  # type: ignore[arg-type]

    def until_quiet(self) -> None:
        """Step until nothing is written any more."""
        for _ in range(20):
            self.cluster.writes.clear()
            self.clock.now += 3
            self.step()
            if not self.cluster.writes:
                return
        raise AssertionError(f"still writing: {self.cluster.writes}")


def status(cluster: MemoryCluster) -> Object:
    """Return the deployment's status."""
    found: Object = cluster.objects["EspHaDeployment", "demo"]["status"]
    return found
