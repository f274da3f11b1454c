"""What pods have in common that run the engine's image under its supervisor."""

from espha.protocol.settings import Settings, variable
from espha_operator.api.deployment import Deployment
from espha_operator.api.names import HEARTBEAT_PORT, HTTP_PORT, LIFELINE_PORT
from espha_operator.resources.meta import Object

GRACE = 30
"""Seconds that a pod has to end: its supervisor hands over first, which takes 24 s at most."""
PORT = {"name": "http", "containerPort": HTTP_PORT}
_PORTS = [
    PORT,
    {"name": "heartbeat", "containerPort": HEARTBEAT_PORT},
    {"name": "lifeline", "containerPort": LIFELINE_PORT},
]


def container(deployment: Deployment, name: str, args: list[str], settings: Settings) -> Object:
    """Return a container whose supervisor serves probes.

    Args:
        deployment: whose container it is.
        name: of the container.
        args: what `espha` is to do.
        settings: those that only it has; the deployment's are added.
    """
    return {
        "name": name,
        "args": args,
        "env": _environment(deployment, settings),
        "ports": _PORTS,
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 2},
        "livenessProbe": {**_probe("/healthz"), "initialDelaySeconds": 10, "periodSeconds": 10},
    }


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "http"}, "timeoutSeconds": 3}


def _environment(deployment: Deployment, own: Settings) -> list[Object]:
    shared = Settings(
        bootstrap=deployment.bootstrap,
        zookeeper=deployment.zookeeper,
        heartbeat_port=HEARTBEAT_PORT,
        lifeline_port=LIFELINE_PORT,
        session_ms=deployment.spec.zookeeper.session_ms,
        failure_timeout_ms=deployment.spec.zookeeper.failure_timeout_ms,
        prefix=deployment.spec.topics.prefix or "",
        deployment=f"{deployment.namespace}/{deployment.name}",
    )
    values = {**shared.environment(), **own.environment()}
    field = {"fieldRef": {"fieldPath": "metadata.name"}}
    return [
        {"name": variable("name"), "valueFrom": field},
        *({"name": name, "value": value} for name, value in values.items()),
    ]
