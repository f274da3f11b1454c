"""Engines and adapters: pods that run the engine's image under its supervisor."""

import json

from espha_operator.api.adapters import InputAdapter, OutputAdapter
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.names import HTTP_PORT, ROLE_LABEL
from espha_operator.resources import common
from espha_operator.resources.meta import Object, checksum, metadata

ENGINE = "engine"
ADAPTER = "adapter"
TOKEN_KEY = "token"  # noqa: S105 - the name of a key
Adapter = InputAdapter | OutputAdapter
_SNAPSHOTS = "snapshots"
_SUPERVISOR_PORT = {"name": "http", "containerPort": HTTP_PORT}


def model(deployment: Deployment, facts: ModelFacts) -> list[Object]:
    """The model as checked: a later, broken edit of the user's ConfigMap must not reach a pod."""
    name = f"{deployment.name}-model"
    return [common.config_map(deployment, name, ENGINE, {"model.xml": facts.xml})]


def token_name(deployment: Deployment) -> str:
    """Name of the Secret with the token."""
    return f"{deployment.name}-token"


def token(deployment: Deployment, value: str) -> Object:
    """The Secret with what must be shown to an engine for a switchover."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(deployment, token_name(deployment), ENGINE),
        "stringData": {TOKEN_KEY: value},
    }


def engines(deployment: Deployment, facts: ModelFacts) -> list[Object]:
    """The engines, a name for each of them, and a Service for the active one."""
    name = f"{deployment.name}-{ENGINE}"
    http = {"http": HTTP_PORT}
    active = {ROLE_LABEL: "active"}
    return [
        common.service(deployment, f"{name}-headless", ENGINE, http, headless=True),
        common.service(
            deployment, f"{deployment.name}-active", ENGINE, http, extra_selector=active
        ),
        common.disruption_budget(deployment, ENGINE),
        common.stateful_set(deployment, _engine_pods(deployment, facts, name)),
    ]


def adapters(deployment: Deployment, facts: ModelFacts) -> list[Object]:
    """Input adapters (one active, the others waiting) and output adapters (one each)."""
    wanted = deployment.spec.adapters
    if not wanted.inputs and not wanted.outputs:
        return []
    headless = common.service(
        deployment,
        f"{deployment.name}-adapter-headless",
        ADAPTER,
        {"http": HTTP_PORT},
        headless=True,
    )
    every: list[Adapter] = [*wanted.inputs, *wanted.outputs]
    made = (_adapter(deployment, facts, one) for one in every)
    return [headless, *(thing for pair in made for thing in pair)]


def adapter_name(deployment: Deployment, adapter: Adapter) -> str:
    """Name of an adapter's objects."""
    direction = "input" if isinstance(adapter, InputAdapter) else "output"
    return f"{deployment.name}-{direction}-{adapter.name}"


def _engine_pods(deployment: Deployment, facts: ModelFacts, name: str) -> common.Pods:
    spec = deployment.spec.engines
    made = _container(
        deployment, ENGINE, ["supervise", "--", "engine"], f"{deployment.root}/engines"
    )
    container = {
        **made,
        "env": [*made["env"], *_snapshot_environment(deployment), _token(deployment)],
        "image": spec.image or deployment.images.engine_image,
        "resources": spec.resources.merged("50m", "512Mi", "1536Mi"),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/espha", "readOnly": True},
            {"name": _SNAPSHOTS, "mountPath": "/var/lib/espha"},
        ],
    }
    return common.Pods(
        name=name,
        component=ENGINE,
        service=f"{name}-headless",
        replicas=spec.replicas,
        container=container,
        volumes=[{"name": "config", "configMap": {"name": f"{deployment.name}-model"}}],
        checksum=checksum(facts.xml),
        grace=5,
        storage=spec.snapshots.storage,
        volume=_SNAPSHOTS,
    )


def _snapshot_environment(deployment: Deployment) -> list[Object]:
    snapshots = deployment.spec.engines.snapshots
    return _variables(
        {
            # Not the volume's root, which may hold a lost+found.
            "ESPHA_SNAPSHOTS": "/var/lib/espha/snapshots",
            "ESPHA_SNAPSHOT_INTERVAL_S": str(snapshots.interval),
            "ESPHA_SNAPSHOTS_RETAINED": str(snapshots.retain),
            # One name for all of them, so that scaling restarts nobody.
            "ESPHA_PEERS": f"{deployment.domain(ENGINE)}:{HTTP_PORT}",
        }
    )


def _token(deployment: Deployment) -> Object:
    # Optional: engines start, and take over from each other, when nobody has made the Secret.
    key = {"name": token_name(deployment), "key": TOKEN_KEY, "optional": True}
    return {"name": "ESPHA_TOKEN", "valueFrom": {"secretKeyRef": key}}


def _adapter(deployment: Deployment, facts: ModelFacts, adapter: Adapter) -> list[Object]:
    name = adapter_name(deployment, adapter)
    config = _adapter_config(adapter)
    pods = common.Pods(
        name=name,
        component=ADAPTER,
        service=f"{deployment.name}-adapter-headless",
        replicas=adapter.replicas if isinstance(adapter, InputAdapter) else 1,
        container=_adapter_container(deployment, adapter),
        volumes=[
            _projected(f"{deployment.name}-model", name),
            {
                "name": "data",
                "persistentVolumeClaim": {"claimName": adapter.volume.claim_name},
            },
        ],
        checksum=checksum(facts.xml, config),
        grace=5,
        selector={"espha.dev/adapter": name.removeprefix(f"{deployment.name}-")},
    )
    return [
        common.config_map(deployment, name, ADAPTER, {"adapter.json": config}),
        common.stateful_set(deployment, pods),
    ]


def _adapter_peers(deployment: Deployment, adapter: Adapter) -> list[Object]:
    """Where an input adapter's supervisors find each other: the Service is that of all adapters."""
    if not isinstance(adapter, InputAdapter):
        return []
    name, domain = adapter_name(deployment, adapter), deployment.domain(ADAPTER)
    hosts = (f"{name}-{number}.{domain}:{HTTP_PORT}" for number in range(adapter.replicas))
    return _variables({"ESPHA_PEERS": ",".join(hosts)})


def _adapter_config(adapter: Adapter) -> str:
    values = adapter.model_dump(
        by_alias=True, exclude_none=True, include={"name", "window", "file"}
    )
    return json.dumps(values, indent=1) + "\n"


def _adapter_container(deployment: Deployment, adapter: Adapter) -> Object:
    config = ["--config", "/etc/espha/adapter.json"]
    if isinstance(adapter, InputAdapter):
        args = ["supervise", "--", "adapter", "input", *config]
    else:
        args = ["supervise", "--no-election", "--", "adapter", "output", *config]
    root = f"{deployment.root}/adapters/{adapter.name}"
    spec = deployment.spec.engines
    made = _container(deployment, ADAPTER, args, root)
    return {
        **made,
        "env": [*made["env"], *_adapter_peers(deployment, adapter)],
        "image": spec.image or deployment.images.engine_image,
        "resources": {
            "requests": {"cpu": "20m", "memory": "96Mi"},
            "limits": {"memory": "384Mi"},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/espha", "readOnly": True},
            {"name": "data", "mountPath": "/data"},
        ],
    }


def _projected(*config_maps: str) -> Object:
    sources = [{"configMap": {"name": name}} for name in config_maps]
    return {"name": "config", "projected": {"sources": sources}}


def _container(deployment: Deployment, name: str, args: list[str], root: str) -> Object:
    return {
        "name": name,
        "args": args,
        "env": _environment(deployment, root),
        "ports": [_SUPERVISOR_PORT],
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
    return [own_name, *_variables(values)]


def _variables(values: dict[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]
