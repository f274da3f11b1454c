"""What pods have in common that run the engine's image under its supervisor."""

from espha_operator.api.deployment import Deployment
from espha_operator.api.names import HTTP_PORT
from espha_operator.resources.meta import Object

PORT = {"name": "http", "containerPort": HTTP_PORT}


def container(deployment: Deployment, name: str, args: list[str], root: str) -> Object:
    """Return a container whose supervisor serves probes; `root`: its path in ZooKeeper."""
    return {
        "name": name,
        "args": args,
        "env": _environment(deployment, root),
        "ports": [PORT],
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 2},
        "livenessProbe": {**_probe("/healthz"), "initialDelaySeconds": 10, "periodSeconds": 10},
    }


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "http"}, "timeoutSeconds": 3}


def _environment(deployment: Deployment, root: str) -> list[Object]:
    values = {
        "ESPHA_BOOTSTRAP": deployment.bootstrap,
        "ESPHA_ZOOKEEPER": deployment.zookeeper,
        "ESPHA_ROOT": root,
        "ESPHA_SESSION_MS": str(deployment.spec.zookeeper.session_ms),
        "ESPHA_PREFIX": deployment.spec.topics.prefix or "",
        "ESPHA_DEPLOYMENT": f"{deployment.namespace}/{deployment.name}",
    }
    own_name = {"name": "ESPHA_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return [own_name, *variables(values)]


def variables(values: dict[str, str]) -> list[Object]:
    """Return environment variables as a container lists them."""
    return [{"name": name, "value": value} for name, value in values.items()]
