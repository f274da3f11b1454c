"""Kafka: a StatefulSet of brokers that are controllers as well (KRaft, combined mode)."""

from espha.protocol import brokers
from espha_operator.api.deployment import Deployment
from espha_operator.api.names import KAFKA_PORT
from espha_operator.api.servers import USUAL_KAFKA
from espha_operator.resources import common
from espha_operator.resources.jvm import server_environment
from espha_operator.resources.meta import Object, checksum
from espha_operator.resources.templates import render

COMPONENT = "kafka"
CONTROLLER_PORT = 9093
FORMAT = "format"
"""The key of what brokers with empty volumes read; its change restarts nobody."""
NEW = "new\n"
"""What lets all brokers begin with empty volumes."""


def kafka(deployment: Deployment, may_format: str = NEW) -> list[Object]:
    """Return everything a managed Kafka needs; nothing for an external one.

    `may_format` is what `kafka-start` reads where a volume is empty; its change restarts nobody.
    """
    if deployment.spec.kafka.external:
        return []
    name = f"{deployment.name}-{COMPONENT}"
    files = _files(deployment)
    peers = {"client": KAFKA_PORT, "controller": CONTROLLER_PORT}
    return [
        common.config_map(deployment, name, COMPONENT, {**files, FORMAT: may_format}),
        common.service(deployment, f"{name}-headless", COMPONENT, peers, headless=True),
        common.service(deployment, name, COMPONENT, {"client": KAFKA_PORT}),
        *(_broker(deployment, f"{name}-{broker}", peers) for broker in _numbers(deployment)),
        common.disruption_budget(deployment, COMPONENT),
        common.stateful_set(deployment, _pods(deployment, name, "".join(files.values()))),
    ]


def _numbers(deployment: Deployment) -> range:
    return range(deployment.spec.kafka.replicas)


def _broker(deployment: Deployment, pod: str, ports: dict[str, int]) -> Object:
    """Return the Service of one broker, whose address does not change with the pod's."""
    chosen = {"statefulset.kubernetes.io/pod-name": pod}
    return common.service(deployment, pod, COMPONENT, ports, peers=True, extra_selector=chosen)


def _files(deployment: Deployment) -> dict[str, str]:
    """Return the brokers' configuration, and what single ones have set otherwise.

    What the user sets holds for all of them.
    """
    given, count = deployment.spec.kafka.config, deployment.spec.kafka.replicas
    usual = brokers.broker_settings(
        count, deployment.spec.replication_factor, deployment.spec.min_in_sync
    )
    files = {
        "server.properties": render(
            "server.properties",
            hosts=deployment.brokers,
            port=KAFKA_PORT,
            controller_port=CONTROLLER_PORT,
            settings={**usual, **dict(sorted(given.items()))},
        )
    }
    for broker in _numbers(deployment):
        own = brokers.own_settings(broker, count)
        lines = [f"{key}={value}\n" for key, value in own.items() if key not in given]
        if lines:
            files[f"server-{broker}.properties"] = "".join(lines)
    return files


def _environment(deployment: Deployment) -> list[Object]:
    spec = deployment.spec.kafka
    values = {
        "KAFKA_CLUSTER_ID": deployment.cluster_id,
        "KAFKA_ADVERTISED_DOMAIN": deployment.services,
    }
    return [
        *({"name": name, "value": value} for name, value in values.items()),
        *server_environment("KAFKA", spec.heap, spec.resources, USUAL_KAFKA, spec.jvm_options),
    ]


def _pods(deployment: Deployment, name: str, config: str) -> common.Pods:
    spec = deployment.spec.kafka
    container = {
        "name": COMPONENT,
        "image": spec.image or deployment.images.kafka_image,
        "env": _environment(deployment),
        "ports": [
            {"name": "client", "containerPort": KAFKA_PORT},
            {"name": "controller", "containerPort": CONTROLLER_PORT},
        ],
        **common.tcp_probes(KAFKA_PORT),
        **common.stays_a_while(),
        "resources": spec.resources.merged(USUAL_KAFKA),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/kafka", "readOnly": True},
            {"name": "data", "mountPath": "/var/lib/kafka"},
        ],
    }
    return common.Pods(
        name=name,
        component=COMPONENT,
        service=f"{name}-headless",
        replicas=spec.replicas,
        container=container,
        volumes=[{"name": "config", "configMap": {"name": name}}],
        checksum=checksum(config),
        # A broker hands its partitions over before it stops.
        grace=common.STAYS_S + 30,
        storage=spec.storage,
        template=spec.pod,
        scratch=USUAL_KAFKA.scratch,
    )
