"""ZooKeeper: a StatefulSet with static membership."""

from espha_operator.api.deployment import Deployment
from espha_operator.api.names import ZOOKEEPER_PORT
from espha_operator.api.servers import MAX_SESSION_TICKS, MIN_SESSION_TICKS, USUAL_ZOOKEEPER
from espha_operator.resources import common
from espha_operator.resources.jvm import server_environment
from espha_operator.resources.meta import Object, checksum
from espha_operator.resources.templates import render

COMPONENT = "zookeeper"


def zookeeper(deployment: Deployment) -> list[Object]:
    """Return everything a managed ZooKeeper needs; nothing for an external one."""
    if deployment.spec.zookeeper.external:
        return []
    name = f"{deployment.name}-{COMPONENT}"
    config = _config(deployment)
    peers = {"client": ZOOKEEPER_PORT, "peer": 2888, "election": 3888}
    return [
        common.config_map(deployment, name, COMPONENT, {"zoo.cfg": config}),
        common.service(deployment, f"{name}-headless", COMPONENT, peers, headless=True),
        common.service(deployment, name, COMPONENT, {"client": ZOOKEEPER_PORT}),
        common.disruption_budget(deployment, COMPONENT),
        common.stateful_set(deployment, _pods(deployment, name, config)),
    ]


def _config(deployment: Deployment) -> str:
    keeper = deployment.spec.zookeeper
    hosts = deployment.hosts(COMPONENT, keeper.replicas)
    tick = keeper.tick_time
    return render(
        "zoo.cfg",
        tick=tick,
        min_session=MIN_SESSION_TICKS * tick,
        max_session=MAX_SESSION_TICKS * tick,
        port=ZOOKEEPER_PORT,
        hosts=hosts,
    )


def _pods(deployment: Deployment, name: str, config: str) -> common.Pods:
    keeper = deployment.spec.zookeeper
    container = {
        "name": COMPONENT,
        "image": keeper.image or deployment.images.zookeeper_image,
        "env": server_environment(
            "ZK", keeper.heap, keeper.resources, USUAL_ZOOKEEPER, keeper.jvm_options
        ),
        "ports": [{"name": "client", "containerPort": ZOOKEEPER_PORT}],
        **common.tcp_probes(ZOOKEEPER_PORT),
        **common.stays_a_while(),
        "resources": keeper.resources.merged(USUAL_ZOOKEEPER),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/zookeeper", "readOnly": True},
            {"name": "data", "mountPath": "/var/lib/zookeeper"},
        ],
    }
    return common.Pods(
        name=name,
        component=COMPONENT,
        service=f"{name}-headless",
        replicas=keeper.replicas,
        container=container,
        volumes=[{"name": "config", "configMap": {"name": name}}],
        checksum=checksum(config),
        grace=common.STAYS_S + 10,
        storage=keeper.storage,
        template=keeper.pod,
        scratch=USUAL_ZOOKEEPER.scratch,
    )
