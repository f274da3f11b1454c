"""Kafka: a StatefulSet of brokers that are controllers as well (KRaft, combined mode)."""

from espha_operator.api.deployment import Deployment
from espha_operator.api.names import KAFKA_PORT
from espha_operator.resources import common
from espha_operator.resources.meta import Object, checksum
from espha_operator.resources.templates import render
from espha_operator.resources.zookeeper import FRESH_DNS

COMPONENT = "kafka"
CONTROLLER_PORT = 9093


def kafka(deployment: Deployment) -> list[Object]:
    """Return everything a managed Kafka needs; nothing for an external one."""
    if deployment.spec.kafka.external:
        return []
    name = f"{deployment.name}-{COMPONENT}"
    config = _config(deployment)
    peers = {"client": KAFKA_PORT, "controller": CONTROLLER_PORT}
    return [
        common.config_map(deployment, name, COMPONENT, {"server.properties": config}),
        common.service(deployment, f"{name}-headless", COMPONENT, peers, headless=True),
        common.service(deployment, name, COMPONENT, {"client": KAFKA_PORT}),
        common.disruption_budget(deployment, COMPONENT),
        common.stateful_set(deployment, _pods(deployment, name, config)),
    ]


def _config(deployment: Deployment) -> str:
    brokers = deployment.spec.kafka
    return render(
        "server.properties",
        hosts=deployment.hosts(COMPONENT, brokers.replicas),
        port=KAFKA_PORT,
        controller_port=CONTROLLER_PORT,
        copies=deployment.spec.replication_factor,
        in_sync=deployment.spec.min_in_sync,
        config=brokers.config,
    )


def _environment(deployment: Deployment) -> list[Object]:
    values = {
        "KAFKA_CLUSTER_ID": deployment.cluster_id,
        "KAFKA_ADVERTISED_DOMAIN": deployment.domain(COMPONENT),
        "KAFKA_HEAP_OPTS": f"-Xms256m -Xmx256m {FRESH_DNS}",
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _pods(deployment: Deployment, name: str, config: str) -> common.Pods:
    brokers = deployment.spec.kafka
    container = {
        "name": COMPONENT,
        "image": brokers.image or deployment.images.kafka_image,
        "env": _environment(deployment),
        "ports": [
            {"name": "client", "containerPort": KAFKA_PORT},
            {"name": "controller", "containerPort": CONTROLLER_PORT},
        ],
        "readinessProbe": common.tcp_probe(KAFKA_PORT),
        "resources": brokers.resources.merged("50m", "400Mi", "900Mi"),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/kafka", "readOnly": True},
            {"name": "data", "mountPath": "/var/lib/kafka"},
        ],
    }
    return common.Pods(
        name=name,
        component=COMPONENT,
        service=f"{name}-headless",
        replicas=brokers.replicas,
        container=container,
        volumes=[{"name": "config", "configMap": {"name": name}}],
        checksum=checksum(config),
        # A broker hands its partitions over before it stops.
        grace=30,
        storage=brokers.storage,
    )
