"""The operator on a real cluster: what it refuses, makes, keeps and cleans up."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cluster.spaces import conditions, wait_for
from espha.local.outcome import complaint
from support.servers import wait_until
from tools.demo_checker import Checker
from tools.offline_cluster import clients
from tools.offline_cluster.say import Failure

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

SMALL: dict[str, Any] = {
    "engines": {"replicas": 1},
    "zookeeper": {"replicas": 1},
    "kafka": {"replicas": 1},
}
MODEL = """<project name="small"><contqueries><contquery name="cq"><windows>
<window-source name="in" insert-only="true"><schema><fields>
<field name="id" type="int64" key="true"/></fields></schema></window-source>
</windows></contquery></contqueries></project>"""
# Ask the brokers from within the cluster; the operator's image has a Kafka client.
ASK_KAFKA = """
import json, sys
from confluent_kafka.admin import AdminClient
from espha.kafka.reader import Offsets
bootstrap, topic = sys.argv[1:]
seen = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20)
print(json.dumps({
    "brokers": {one.id: one.host for one in seen.brokers.values()},
    "behind": [name for name, topic in seen.topics.items()
               for one in topic.partitions.values() if len(one.isrs) < len(one.replicas)],
    "end": Offsets(bootstrap).end(topic),
}))
"""


def resource(name: str = "small", **spec: Any) -> str:
    body = {
        "apiVersion": "espha.dev/v1alpha1",
        "kind": "EspHaDeployment",
        "metadata": {"name": name},
        "spec": {"model": {"inline": MODEL}, "pvcPolicy": "Delete", **spec},
    }
    return json.dumps(body)


def until(
    holds: Callable[[], bool],
    what: str,
    seconds: float = 120,
    moved: Callable[[], object] | None = None,
) -> None:
    wait_until(holds, seconds, what, 0.5, moved)


def objects(namespace: str, kinds: str = "all,configmaps,pdb,pvc") -> list[str]:
    names = clients.kubectl("-n", namespace, "get", kinds, "-o", "name").split()
    return [one for one in names if "kube-root-ca" not in one]


def test_explain_describes_fields(operator: str) -> None:
    """The API server describes a kind some time after it has got its definition."""

    def described() -> bool:
        try:
            text = clients.kubectl("explain", "esphadeployment.spec.zookeeper.tickTime")
        except Failure:
            return False
        return "unit of time in milliseconds" in " ".join(text.split())

    until(described, "the field is described")


BAD_MODELS = {
    "not well-formed": ("<project name='p'>\n<contqueries>", ["line 2"]),
    "unsupported window": (
        MODEL.replace("window-source", "window-train"),
        ["line 2", "window-train"],
    ),
    "edge to nowhere": (
        MODEL.replace(
            "</windows>", "</windows>\n<edges>\n<edge source='in' target='out'/></edges>"
        ),
        ["line 6", "edge", "out"],
    ),
}


@pytest.mark.parametrize(("xml", "words"), BAD_MODELS.values(), ids=BAD_MODELS.keys())
def test_a_bad_model_is_named_and_starts_nothing(
    other_namespace: str, xml: str, words: list[str]
) -> None:
    name = "bad"
    clients.kubectl(
        "-n", other_namespace, "apply", "-f", "-", stdin=resource(name, model={"inline": xml})
    )
    clients.kubectl(
        "-n",
        other_namespace,
        "wait",
        "--for=condition=Ready=false",
        f"espha/{name}",
        "--timeout=30s",
    )
    seen = conditions(other_namespace, name)
    assert (seen["ModelValid"]["status"], seen["ModelValid"]["reason"]) == ("False", "InvalidModel")
    assert [word for word in words if word not in seen["Ready"]["message"]] == []
    assert objects(other_namespace, "statefulsets,services,configmaps") == []
    clients.kubectl("-n", other_namespace, "delete", "espha", name, "--timeout=60s")


def test_a_model_that_comes_later_starts_the_deployment(other_namespace: str) -> None:
    where = ("-n", other_namespace)
    model = {"configMap": {"name": "late"}}
    clients.kubectl(*where, "apply", "-f", "-", stdin=resource("late", **SMALL, model=model))
    clients.kubectl(*where, "wait", "--for=condition=Ready=false", "espha/late", "--timeout=30s")
    assert (
        conditions(other_namespace, "late")["Ready"]["message"] == 'There is no ConfigMap "late".'
    )
    clients.kubectl(*where, "create", "configmap", "late", f"--from-literal=model.xml={MODEL}")
    wait_for(other_namespace, "ModelValid", "late")
    until(lambda: "statefulset.apps/late-kafka" in objects(other_namespace), "Kafka starts")
    clients.kubectl(*where, "delete", "espha/late", "configmap/late", "--timeout=60s")
    until(lambda: objects(other_namespace) == [], "everything has gone")


def test_the_service_of_a_pair_leads_to_the_active_adapter(other_namespace: str) -> None:
    where = ("-n", other_namespace)
    posts = {"name": "posts", "window": "cq/in", "http": {"port": 8090}}
    spec = {**SMALL, "adapters": {"inputs": [posts]}}
    clients.kubectl(*where, "apply", "-f", "-", stdin=resource(**spec))
    wait_for(other_namespace, "AdaptersReady", "small")

    def active() -> str:
        name = "{.status.adapters[0].active}"
        return clients.kubectl(*where, "get", "espha/small", "-o", f"jsonpath={name}")

    def led_to() -> list[str]:
        label, names = "kubernetes.io/service-name=small-input-posts", "{..targetRef.name}"
        asked = ("get", "endpointslices", "-l", label, "-o", f"jsonpath={names}")
        return clients.kubectl(*where, *asked).split()

    until(lambda: active() != "" and led_to() == [active()], "it leads to the active pod")
    first = active()
    clients.kubectl(*where, "delete", "pod", first, "--grace-period=0", "--force")
    until(lambda: active() not in ("", first), "the other one is active")
    until(lambda: led_to() == [active()], "it leads to the other pod")
    clients.kubectl(*where, "delete", "espha", "small", "--timeout=60s")
    until(lambda: objects(other_namespace) == [], "everything has gone")


def claimed(namespace: str, volumes: list[str], policy: str) -> bool:
    """Say whether these volumes are there, and under the policy: with an owner, or without."""
    if not set(volumes) <= set(objects(namespace)):
        return False
    text = clients.kubectl("-n", namespace, "get", *volumes, "-o", "json")
    owned = ["ownerReferences" in one["metadata"] for one in json.loads(text)["items"]]
    return all(owned) if policy == "Delete" else not any(owned)


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_deletion_leaves_what_the_policy_keeps(other_namespace: str, policy: str) -> None:
    """The second run finds the volumes that the first has kept, and its cluster id on them."""
    where = ("-n", other_namespace)
    clients.kubectl(*where, "apply", "-f", "-", stdin=resource(**SMALL, pvcPolicy=policy))
    claims = ("data-small-kafka-0", "data-small-zookeeper-0", "snapshots-small-engine-0")
    volumes = [f"persistentvolumeclaim/{claim}" for claim in claims]
    until(lambda: claimed(other_namespace, volumes, policy), "all volumes are claimed")
    clients.kubectl(*where, "delete", "espha", "small", "--timeout=60s")
    kept = volumes if policy == "Retain" else []
    until(lambda: sorted(objects(other_namespace)) == kept, f"only {kept} is left")


def test_what_cannot_change_is_refused(other_namespace: str) -> None:
    where = ("-n", other_namespace)
    bad = resource("fixed", model={"inline": "<bad/>"}, topics={"prefix": "a"})
    clients.kubectl(*where, "apply", "-f", "-", stdin=bad)
    changes = {
        "The topic prefix cannot change": {"topics": {"prefix": "b"}},
        "The number of Kafka brokers cannot change": {"kafka": {"replicas": 5}},
        "The number of ZooKeeper servers cannot change": {"zookeeper": {"replicas": 5}},
        "The storage of Kafka brokers cannot shrink": {"kafka": {"storage": {"size": "512Mi"}}},
        "cannot move between a managed and an external Kafka": {
            "kafka": {"external": {"bootstrapServers": ["k:1"]}}
        },
    }
    for message, change in changes.items():
        patch = json.dumps({"spec": change})
        with pytest.raises(Failure) as refused:
            clients.kubectl(*where, "patch", "espha", "fixed", "--type=merge", "-p", patch)
        assert message in str(refused.value)
    clients.kubectl(*where, "delete", "espha", "fixed", "--timeout=60s")


# Conditions that are true for what is out of the ordinary.
UNUSUAL = {"Progressing", "Stalled", "Paused", "StorageLow"}


def test_a_ready_deployment_shows_itself(demo: str) -> None:
    header, line = clients.kubectl("-n", demo, "get", "espha").splitlines()
    assert header.split() == [
        "NAME", "PHASE", "AVAILABLE", "READY", "ACTIVE", "ENGINES", "KAFKA", "ZOOKEEPER", "MODEL",
        "FAILOVERS", "AGE",
    ]  # fmt: skip
    name, phase, available, complete, active, *ready = line.split()[:8]
    assert (name, phase, available, complete) == ("demo", "Ready", "True", "True")
    assert ready == ["3/3", "3/3", "3/3"]
    seen = conditions(demo, "demo")
    assert {one["status"] for name, one in seen.items() if name not in UNUSUAL} == {"True"}
    # The volumes are this machine's disk, which may well be full.
    quiet = UNUSUAL - {"StorageLow"}
    assert {seen[name]["status"] for name in quiet} == {"False"}
    asked = ("get", "pods", "-l", "espha.dev/role=active", "-o", "name")
    labelled = clients.kubectl("-n", demo, *asked)
    assert labelled.split() == [f"pod/{active}"]


def test_a_deleted_broker_comes_back_the_same(demo: str, operator: str) -> None:
    def kafka() -> dict[str, Any]:
        program = ("exec", "-i", "deployment/espha-operator", "--", "python3", "-")
        topic = "HAtopic1_31415.HA_Project.cq.memory.I"
        asked = (*program, f"demo-kafka.{demo}.svc:9092", topic)
        told = clients.kubectl("-n", operator, *asked, stdin=ASK_KAFKA)
        answer: dict[str, Any] = json.loads(told)
        return answer

    def disk() -> str:
        return clients.kubectl("-n", demo, "exec", "demo-kafka-1", "--", "cat", path)

    path = "/var/lib/kafka/data/meta.properties"
    until(lambda: kafka()["end"] > 0, "rows come")
    brokers, data, identity = kafka()["brokers"], kafka()["end"], disk()
    uid = ("get", "pod", "demo-kafka-1", "-o", "jsonpath={.metadata.uid}")
    before = clients.kubectl("-n", demo, *uid)
    clients.kubectl("-n", demo, "delete", "pod", "demo-kafka-1", "--wait=true")
    until(lambda: conditions(demo, "demo")["KafkaReady"]["status"] == "False", "it is missed")
    wait_for(demo, "KafkaReady", "demo")
    assert clients.kubectl("-n", demo, *uid) != before
    assert disk() == identity
    after = kafka()
    assert after["brokers"] == brokers
    assert after["end"] >= data > 0
    # Also a broker that has caught up falls behind for a moment where it gets no processor.
    until(lambda: not kafka()["behind"], "replicas are in sync", moved=lambda: kafka()["behind"])


def test_an_engine_starts_from_the_archive_of_java_classes(demo: str) -> None:
    """A JVM that cannot use it says so and goes on; its start takes nearly twice the time."""
    log = clients.kubectl("-n", demo, "logs", "demo-engine-0")
    assert "log4j profile" in log, "the JVM's own lines are there"
    assert "shared archive" not in log


def test_a_roll_out_takes_one_pod_after_the_other(demo: str) -> None:
    """Kubernetes itself would take the highest number first, and not wait for a quorum."""

    def servers() -> dict[str, str]:
        selected = ("-l", "app.kubernetes.io/component=zookeeper", "-o", "json")
        listed = json.loads(clients.kubectl("-n", demo, "get", "pods", *selected))["items"]
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in listed}

    wait_for(demo, "Ready", "demo")
    before, took_over = servers(), failovers(demo)
    clients.kubectl("-n", demo, "rollout", "restart", "statefulset/demo-zookeeper")
    missing: list[int] = []

    def renewed() -> bool:
        now = servers()
        missing.append(len(set(before) - set(now)))
        return len(now) == 3 and not set(now.values()) & set(before.values())

    until(renewed, "all servers are new", moved=servers)
    wait_for(demo, "Ready", "demo")
    assert max(missing) <= 1
    assert failovers(demo) == took_over


def failovers(namespace: str) -> str:
    path = "jsonpath={.status.failovers}"
    return clients.kubectl("-n", namespace, "get", "espha", "demo", "-o", path)


def test_engines_scale(demo: str) -> None:
    """More engines are no reason for a failover; fewer are one only for an engine that goes."""

    def shown(path: str) -> str:
        return clients.kubectl("-n", demo, "get", "espha", "demo", "-o", f"jsonpath={path}")

    def scale(count: int) -> None:
        clients.kubectl("-n", demo, "scale", "espha/demo", f"--replicas={count}")
        ready = f"{count}/{count} Ready"
        until(
            lambda: shown("{.status.engines} {.status.phase}") == ready,
            f"{count} engines",
            moved=lambda: shown("{.status.conditions}"),
        )

    scale(2)
    before = shown("{.status.active} {.status.failovers}")
    scale(3)
    assert shown("{.status.active} {.status.failovers}") == before


def test_nothing_was_lost_in_all_that(demo: str) -> None:
    """The demo's checker says so of all rows that came while the tests above were at work."""
    checker = Checker(demo, "demo")
    clients.kubectl("-n", demo, "scale", "deployment/memory-producer", "--replicas=0")
    until(checker.has_ended, "the checker compares")
    report = checker.report()
    assert complaint(report) == ""
    assert report["rows_in"] == report["rows_out"] > 0
