"""Adapters: pods of which one is active, or which are alone."""

from collections.abc import Container

from espha.protocol.settings import Settings
from espha_operator.api.adapters import SECRETS, USUAL_ADAPTER, Adapter
from espha_operator.api.deployment import Deployment
from espha_operator.api.names import HTTP_PORT, ROLE_LABEL
from espha_operator.resources import common, supervised, versions
from espha_operator.resources.meta import Object, checksum

ADAPTER = "adapter"
_CONFIG = "/etc/espha"
_READABLE = 0o440
"""Of files with secrets: for the user and the group of the pod only."""


def adapters(deployment: Deployment, digest: str, shared: Container[str] = ()) -> list[Object]:
    """Return the objects of all adapters, and the Service that names their pods.

    Args:
        deployment: whose adapters they are.
        digest: of the model whose windows they read or write.
        shared: claims of volumes that several nodes can mount at a time.
    """
    wanted = deployment.spec.adapters.every
    if not wanted:
        return []
    headless = common.service(
        deployment,
        f"{deployment.name}-adapter-headless",
        ADAPTER,
        {"http": HTTP_PORT},
        headless=True,
    )
    made = (_adapter(deployment, digest, one, shared) for one in wanted)
    return [headless, *(thing for some in made for thing in some)]


def _adapter(
    deployment: Deployment, digest: str, adapter: Adapter, shared: Container[str]
) -> list[Object]:
    name = f"{deployment.name}-{adapter.label}"
    config = adapter.text()
    own = {"espha.dev/adapter": adapter.label}
    claim = adapter.volume.claim_name if adapter.volume else None
    claim = claim if claim not in shared else None
    pods = common.Pods(
        name=name,
        component=ADAPTER,
        service=f"{deployment.name}-adapter-headless",
        replicas=adapter.pods,
        container=_container(deployment, adapter),
        volumes=[
            _projected(versions.name(deployment, digest), name),
            *_data(adapter),
            *_secrets(adapter),
        ],
        checksum=checksum(digest, config),
        # An active one commits what is under way before it ends.
        grace=supervised.GRACE,
        selector=own,
        template=adapter.pod,
        scratch=USUAL_ADAPTER.scratch,
        claim=claim,
        storage=adapter.own_storage,
    )
    return [
        common.config_map(deployment, name, ADAPTER, {"adapter.json": config}),
        *_service(deployment, adapter, name, own),
        # Pods bound to one node can only leave it together: a budget would stop its drain.
        *([] if claim else [common.disruption_budget(deployment, ADAPTER, name, own)]),
        common.stateful_set(deployment, pods),
    ]


def _service(
    deployment: Deployment, adapter: Adapter, name: str, own: dict[str, str]
) -> list[Object]:
    """Return the Service for those who send to it; a standby refuses connections."""
    if adapter.port is None:
        return []
    role = {ROLE_LABEL: "active"} if adapter.by_role else {}
    ports = {"data": adapter.port}
    return [common.service(deployment, name, ADAPTER, ports, extra_selector={**own, **role})]


def _data(adapter: Adapter) -> list[Object]:
    if adapter.volume is None:
        return []
    claim = {"claimName": adapter.volume.claim_name}
    return [{"name": "data", "persistentVolumeClaim": claim}]


def _secrets(adapter: Adapter) -> list[Object]:
    return [
        {"name": f"secret-{number}", "secret": {"secretName": name, "defaultMode": _READABLE}}
        for number, name in enumerate(_secret_names(adapter))
    ]


def _secret_names(adapter: Adapter) -> list[str]:
    return [one.secret_name for one in adapter.secret_files or []]


def _projected(*config_maps: str) -> Object:
    sources = [{"configMap": {"name": name}} for name in config_maps]
    return {"name": "config", "projected": {"sources": sources}}


def _container(deployment: Deployment, adapter: Adapter) -> Object:
    election = [] if adapter.elected else ["--no-election"]
    command = ["adapter", adapter.role, "--config", f"{_CONFIG}/adapter.json"]
    spec = deployment.spec.engines
    args = ["supervise", *election, "--", *command]
    made = supervised.container(deployment, ADAPTER, args, _settings(deployment, adapter))
    mounts: list[Object] = [{"name": "config", "mountPath": _CONFIG, "readOnly": True}]
    if adapter.volume is not None or adapter.own_storage is not None:
        mounts.append({"name": "data", "mountPath": "/data"})
    mounts += [
        {"name": f"secret-{number}", "mountPath": f"{SECRETS}/{name}", "readOnly": True}
        for number, name in enumerate(_secret_names(adapter))
    ]
    port = [{"name": "data", "containerPort": adapter.port}] if adapter.port else []
    return {
        **made,
        "ports": [*made["ports"], *port],
        "image": spec.image or deployment.images.engine_image,
        "resources": (adapter.resources or deployment.spec.adapters.resources).merged(
            USUAL_ADAPTER
        ),
        "volumeMounts": mounts,
    }


def _settings(deployment: Deployment, adapter: Adapter) -> Settings:
    bootstrap, root = deployment.bootstrap, f"{deployment.root}/adapters/{adapter.name}"
    if not adapter.elected:
        return Settings(bootstrap=bootstrap, root=root)
    # Where its supervisors find each other: the Service is that of all adapters.
    name, domain = f"{deployment.name}-{adapter.label}", deployment.domain(ADAPTER)
    hosts = (f"{name}-{number}.{domain}:{HTTP_PORT}" for number in range(adapter.pods))
    return Settings(bootstrap=bootstrap, root=root, peers=",".join(hosts))
