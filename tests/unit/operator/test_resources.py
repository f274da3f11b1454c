"""The builders: golden objects, and what must hold for each of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from espha.adapters.config import load
from espha.adapters.file_input.spec import InputFile
from espha.adapters.file_output.spec import OutputFile
from espha.adapters.types import InputConfig, OutputConfig
from espha.ha.supervisor import LEAVE_S
from espha.protocol import brokers
from espha_operator.resources import adapters, engines, kafka, supervised, zookeeper
from unit.operator.samples import FULL, MODEL, deployment

Objects = list[dict[str, Any]]


def everything(**spec: Any) -> Objects:
    made = deployment(**FULL, **spec)
    return [
        *zookeeper.zookeeper(made),
        *kafka.kafka(made),
        *engines.model(made, MODEL),
        *engines.engines(made, MODEL),
        *adapters.adapters(made, MODEL.digest),
    ]


def named(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    return next(one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name)


def properties(objects: Objects, name: str, key: str) -> dict[str, str]:
    text = named(objects, "ConfigMap", name)["data"][key]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def container(objects: Objects, name: str) -> dict[str, Any]:
    made: dict[str, Any] = named(objects, "StatefulSet", name)["spec"]["template"]["spec"]
    return made["containers"][0]  # type: ignore[no-any-return]


def test_zookeeper_is_golden(golden: Callable[[str, Objects], None]) -> None:
    golden("zookeeper", zookeeper.zookeeper(deployment()))


def test_kafka_is_golden(golden: Callable[[str, Objects], None]) -> None:
    golden(
        "kafka",
        kafka.kafka(deployment(kafka={"config": {"log.segment.bytes": 1048576}})),
    )


def test_engines_are_golden(golden: Callable[[str, Objects], None]) -> None:
    made = deployment(**FULL)
    golden("engines", [*engines.model(made, MODEL), *engines.engines(made, MODEL)])


def test_engines_are_told_which_model_may_lead_in_place_of_the_logs() -> None:
    made = deployment(engines={"forceModel": f"{MODEL.digest[:12]}@4711"})
    pods = named(engines.engines(made, MODEL), "StatefulSet", "demo-engine")["spec"]["template"]
    told = {one["name"]: one.get("value") for one in pods["spec"]["containers"][0]["env"]}
    assert told["ESPHA_FORCE_MODEL"] == f"{MODEL.digest[:12]}@4711"


def test_adapters_are_golden(golden: Callable[[str, Objects], None]) -> None:
    golden("adapters", adapters.adapters(deployment(**FULL), MODEL.digest))


def test_who_sends_to_an_adapter_finds_it_by_a_service() -> None:
    inputs = [{"name": "posts", "window": "cq/memory", "http": {"port": 8090}}]
    made = adapters.adapters(deployment(adapters={"inputs": inputs}), MODEL.digest)
    service = named(made, "Service", "demo-input-posts")["spec"]
    assert service["ports"] == [
        {"name": "data", "port": 8090, "targetPort": 8090, "protocol": "TCP"}
    ]
    pods = named(made, "StatefulSet", "demo-input-posts")["spec"]["template"]
    labels = {**pods["metadata"]["labels"], "espha.dev/role": "active"}
    assert service["selector"].items() <= labels.items()
    (container,) = pods["spec"]["containers"]
    assert {"name": "data", "containerPort": 8090} in container["ports"]


def test_each_replica_of_an_input_adapter_can_have_a_volume_of_its_own() -> None:
    """Their nodes follow from the volumes: nothing binds the pods to each other."""
    inputs = [{"name": "a", "window": "cq/memory", "file": {"path": "/data/x"},
               "storage": {"size": "2Gi", "storageClassName": "disks"}}]  # fmt: skip
    made = adapters.adapters(deployment(adapters={"inputs": inputs}), MODEL.digest)
    (one,) = [each for each in made if each["kind"] == "StatefulSet"]
    (claim,) = one["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "data"
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert claim["spec"]["storageClassName"] == "disks"
    assert one["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"] == "Retain"
    pod = one["spec"]["template"]["spec"]
    assert "data" not in [volume["name"] for volume in pod["volumes"]]
    assert {"name": "data", "mountPath": "/data"} in pod["containers"][0]["volumeMounts"]
    assert list(pod["affinity"]) == ["podAntiAffinity"]
    assert "PodDisruptionBudget" in [each["kind"] for each in made]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, "An adapter of files needs a volume"),
        ({"storage": {}, "volume": {"claimName": "x"}}, "Give volume .* or storage"),
    ],
)
def test_an_input_adapter_of_files_has_one_volume_or_one_for_each_replica(
    more: dict[str, Any], sentence: str
) -> None:
    given = {"name": "a", "window": "cq/memory", "file": {"path": "/data/x"}, **more}
    with pytest.raises(ValidationError, match=sentence):
        deployment(adapters={"inputs": [given]})


@pytest.mark.parametrize(("replicas", "by_role"), [(1, False), (2, True)])
def test_of_several_adapters_that_listen_the_service_leads_to_the_active_one(
    replicas: int, by_role: bool
) -> None:
    """A standby refuses connections; who is alone waits for nobody to give it a label."""
    inputs = [{"name": "s", "window": "cq/memory", "socket": {"port": 8090}, "replicas": replicas}]
    made = adapters.adapters(deployment(adapters={"inputs": inputs}), MODEL.digest)
    selector = named(made, "Service", "demo-input-s")["spec"]["selector"]
    assert (selector.get("espha.dev/role") == "active") is by_role


def test_an_output_that_waits_for_its_peer_has_a_service() -> None:
    outputs = [{"name": "s", "window": "cq/outbound", "socket": {"port": 7000}}]
    made = adapters.adapters(deployment(adapters={"outputs": outputs}), MODEL.digest)
    service = named(made, "Service", "demo-output-s")["spec"]
    assert [one["port"] for one in service["ports"]] == [7000]
    pods = named(made, "StatefulSet", "demo-output-s")["spec"]["template"]
    assert service["selector"].items() <= pods["metadata"]["labels"].items()


def test_secrets_are_files_of_the_adapter_that_names_them() -> None:
    names = [{"secretName": "far-kafka"}, {"secretName": "ca.example.org"}]
    outputs = [
        {"name": "s", "window": "cq/outbound", "socket": {"port": 7000}, "secretFiles": names},
        {"name": "t", "window": "cq/outbound", "socket": {"port": 7001}},
    ]
    made = adapters.adapters(deployment(adapters={"outputs": outputs}), MODEL.digest)
    pod = named(made, "StatefulSet", "demo-output-s")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {one["name"]: one["secret"] for one in pod["volumes"] if "secret" in one}
    mounts = {one["name"]: one for one in container["volumeMounts"] if one["name"] in volumes}
    assert {mounts[name]["mountPath"]: one["secretName"] for name, one in volumes.items()} == {
        "/secrets/far-kafka": "far-kafka",
        "/secrets/ca.example.org": "ca.example.org",
    }
    assert all(one["readOnly"] for one in mounts.values())
    assert {one["defaultMode"] for one in volumes.values()} == {0o440}
    other = named(made, "StatefulSet", "demo-output-t")["spec"]["template"]["spec"]
    assert not [one for one in other["volumes"] if "secret" in one]


def test_an_adapter_may_have_resources_of_its_own() -> None:
    large = {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}}
    common = {"limits": {"memory": "512Mi"}}
    outputs = [
        {"name": name, "window": "cq/outbound", "socket": {"port": port}, **more}
        for name, port, more in (("s", 7000, {"resources": large}), ("t", 7001, {}))
    ]
    spec = {"outputs": outputs, "resources": common}
    made = adapters.adapters(deployment(adapters=spec), MODEL.digest)
    found = {
        name: named(made, "StatefulSet", f"demo-output-{name}")["spec"]["template"]["spec"][
            "containers"
        ][0]["resources"]
        for name in "st"
    }
    assert found["s"]["limits"]["memory"] == "2Gi"
    assert found["s"]["requests"] == {"cpu": "1", "memory": "128Mi"}
    assert found["t"]["limits"]["memory"] == "512Mi"


def test_an_adapter_does_not_listen_where_its_pod_does() -> None:
    inputs = [{"name": "posts", "window": "cq/memory", "http": {"port": 8080}}]
    with pytest.raises(ValueError, match="8080, 8081, 8082; choose another port"):
        deployment(adapters={"inputs": inputs})


def test_adapters_can_read_their_configuration(tmp_path: Path) -> None:
    """The operator writes what `espha.adapters.config` reads."""

    def written(name: str) -> Path:
        path = tmp_path / name
        path.write_text(named(everything(), "ConfigMap", name)["data"]["adapter.json"])
        return path

    source = load(written("demo-input-memory"), InputConfig).settings
    assert isinstance(source, InputFile)
    assert source.header_lines == 1
    target = load(written("demo-output-result"), OutputConfig).settings
    assert isinstance(target, OutputFile)
    assert target.header == "full"


def test_every_object_goes_with_its_deployment() -> None:
    for one in everything():
        owner = one["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"], owner["controller"]) == (
            "EspHaDeployment",
            "uid-1",
            True,
        )


def test_every_pod_is_restricted() -> None:
    """What Kubernetes' `restricted` standard asks for, and a read-only root file system."""
    sets = [one for one in everything() if one["kind"] == "StatefulSet"]
    assert len(sets) == 5
    for one in sets:
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        inner = pod["containers"][0]["securityContext"]
        assert inner["allowPrivilegeEscalation"] is False
        assert inner["capabilities"] == {"drop": ["ALL"]}
        assert inner["readOnlyRootFilesystem"] is True


def test_a_pod_has_time_to_hand_over_before_it_is_killed() -> None:
    assert supervised.GRACE >= LEAVE_S + 5


def test_pods_fit_two_cores() -> None:
    """Three brokers, servers and engines, and the adapters must all be scheduled."""
    total = 0
    for one in everything():
        if one["kind"] == "StatefulSet":
            asked = container([one], one["metadata"]["name"])["resources"]["requests"]["cpu"]
            total += int(asked.removesuffix("m")) * one["spec"]["replicas"]
    assert total <= 850


@pytest.mark.parametrize(("tick", "init", "sync"), [(200, 50, 25), (500, 20, 10), (300, 34, 17)])
def test_zookeeper_limits_are_times_not_ticks(tick: int, init: int, sync: int) -> None:
    config = properties(everything(zookeeper={"tickTime": tick}), "demo-zookeeper", "zoo.cfg")
    assert (config["initLimit"], config["syncLimit"]) == (str(init), str(sync))
    assert config["minSessionTimeout"] == str(2 * tick)
    assert config["maxSessionTimeout"] == str(20 * tick)


@pytest.mark.parametrize(
    ("factor", "minimum", "copies", "in_sync"),
    [(5, None, "5", "4"), (5, 3, "5", "3"), (None, 3, "3", "3")],
)
def test_the_transaction_log_is_as_safe_as_the_topics(
    factor: int | None, minimum: int | None, copies: str, in_sync: str
) -> None:
    topics = {"replicationFactor": factor, "minInSyncReplicas": minimum}
    objects = kafka.kafka(deployment(kafka={"replicas": 5}, topics=topics))
    config = properties(objects, "demo-kafka", "server.properties")
    assert config["transaction.state.log.replication.factor"] == copies
    assert config["transaction.state.log.min.isr"] == in_sync


@pytest.mark.parametrize(
    ("brokers", "copies", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_kafka_copies_fit_the_brokers(brokers: int, copies: str, in_sync: str) -> None:
    config = properties(everything(kafka={"replicas": brokers}), "demo-kafka", "server.properties")
    assert config["transaction.state.log.replication.factor"] == copies
    assert config["offsets.topic.replication.factor"] == copies
    assert config["transaction.state.log.min.isr"] == in_sync
    assert len(config["controller.quorum.voters"].split(",")) == brokers


@pytest.mark.parametrize(("count", "copies", "in_sync"), [(1, 1, 1), (3, 3, 2)])
def test_brokers_are_set_as_in_local_deployments_and_tests(
    count: int, copies: int, in_sync: int
) -> None:
    shipped = properties(everything(kafka={"replicas": count}), "demo-kafka", "server.properties")
    usual = brokers.broker_settings(count, copies, in_sync)
    assert {name: shipped[name] for name in usual} == usual


def test_the_broker_that_leads_is_the_last_one_to_become_controller() -> None:
    objects = everything()
    usual = properties(objects, "demo-kafka", "server.properties")
    own = properties(objects, "demo-kafka", f"server-{brokers.LEADER}.properties")
    fetch, election = "controller.quorum.fetch.timeout.ms", "controller.quorum.election.timeout.ms"
    assert int(own[fetch]) < int(usual[fetch])
    assert int(own[election]) > 2 * int(usual[election])
    assert sorted(named(objects, "ConfigMap", "demo-kafka")["data"]) == [
        "format",
        f"server-{brokers.LEADER}.properties",
        "server.properties",
    ]


def test_what_the_user_sets_holds_for_all_brokers() -> None:
    given = {"controller.quorum.fetch.timeout.ms": 5000, "broker.session.timeout.ms": 9000}
    objects = everything(kafka={"config": given})
    assert (
        properties(objects, "demo-kafka", "server.properties").items()
        >= {
            "controller.quorum.fetch.timeout.ms": "5000",
            "broker.session.timeout.ms": "9000",
        }.items()
    )
    own = properties(objects, "demo-kafka", f"server-{brokers.LEADER}.properties")
    assert "controller.quorum.fetch.timeout.ms" not in own


def test_a_changed_configuration_restarts_its_pods_only() -> None:
    def sums(**spec: Any) -> dict[str, str]:
        return {
            one["metadata"]["name"]: one["spec"]["template"]["metadata"]["annotations"][
                "espha.dev/config"
            ]
            for one in everything(**spec)
            if one["kind"] == "StatefulSet"
        }

    before, after = sums(), sums(kafka={"config": {"log.segment.bytes": 1048576}})
    assert {name for name in before if before[name] != after[name]} == {"demo-kafka"}


def test_external_servers_make_no_objects() -> None:
    made = everything(
        zookeeper={"external": {"servers": ["zk:2181"]}},
        kafka={"external": {"bootstrapServers": ["k1:9092", "k2:9092"]}},
    )
    assert not [one for one in made if "zookeeper" in one["metadata"]["name"]]
    env = {one["name"]: one.get("value") for one in container(made, "demo-engine")["env"]}
    assert env["ESPHA_BOOTSTRAP"] == "k1:9092,k2:9092"
    assert env["ESPHA_ZOOKEEPER"] == "zk:2181"
    assert env["ESPHA_SESSION_MS"] == "800"


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_volumes_follow_the_policy(policy: str) -> None:
    made = everything(pvcPolicy=policy)
    for name in ("demo-kafka", "demo-zookeeper"):
        kept = named(made, "StatefulSet", name)["spec"]["persistentVolumeClaimRetentionPolicy"]
        assert kept == {"whenDeleted": policy, "whenScaled": "Retain"}


def test_the_cluster_id_depends_on_the_name_alone() -> None:
    """A deployment made again on kept volumes must find the id that they carry."""
    assert deployment().cluster_id == deployment(kafka={"replicas": 1}).cluster_id
    assert len(deployment().cluster_id) == 22
