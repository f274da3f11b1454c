"""Engines: pods that run the model, and a Service for the active one."""

from collections.abc import Iterable

from espha.protocol.deaths import MEMORY
from espha.protocol.settings import HEAP_MIB, Settings, variable
from espha_operator.api.deployment import Deployment, ModelFacts, ModelVersion
from espha_operator.api.names import HTTP_PORT, ROLE_LABEL
from espha_operator.api.spec import USUAL_ENGINE
from espha_operator.resources import common, supervised, versions
from espha_operator.resources.jvm import heap_mib
from espha_operator.resources.meta import TOKEN_KEY, Object, checksum, token_name

ENGINE = "engine"
_SNAPSHOTS = "snapshots"
_MEMORY = {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}
"""Outlives the container, and needs no disk; as large as what containers have there otherwise."""
# The state lies in Python's memory; the JVM only passes batches on.
_SHARE, _MOST_MIB = 1 / 3, 2048


def model(
    deployment: Deployment, facts: ModelFacts, kept: Iterable[ModelVersion] = ()
) -> list[Object]:
    """Return the model as checked: a broken edit of the user's ConfigMap must not reach a pod.

    Versions that are `kept` may still run somewhere, or be wanted again.
    """
    texts = {one.digest: one.xml for one in kept} | {facts.digest: facts.xml}
    return [versions.version(deployment, digest, xml) for digest, xml in texts.items()]


def engines(deployment: Deployment, facts: ModelFacts) -> list[Object]:
    """Return the engines, a name for each of them, and a Service for the active one."""
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


def _engine_pods(deployment: Deployment, facts: ModelFacts, name: str) -> common.Pods:
    spec = deployment.spec.engines
    made = supervised.container(
        deployment, ENGINE, ["supervise", "--", "engine"], _settings(deployment)
    )
    container = {
        **made,
        "env": [*made["env"], _token(deployment)],
        "image": spec.image or deployment.images.engine_image,
        "resources": spec.resources.merged(USUAL_ENGINE),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/espha", "readOnly": True},
            {"name": _SNAPSHOTS, "mountPath": "/var/lib/espha"},
            {"name": _MEMORY["name"], "mountPath": MEMORY},
        ],
    }
    return common.Pods(
        name=name,
        component=ENGINE,
        service=f"{name}-headless",
        replicas=spec.replicas,
        container=container,
        volumes=[
            {"name": "config", "configMap": {"name": versions.name(deployment, facts.digest)}},
            _MEMORY,
        ],
        checksum=checksum(facts.digest),
        # An active engine hands over before it ends.
        grace=supervised.GRACE,
        storage=spec.snapshots.storage,
        volume=_SNAPSHOTS,
        template=spec.pod,
        scratch=USUAL_ENGINE.scratch,
    )


def _settings(deployment: Deployment) -> Settings:
    spec = deployment.spec.engines
    snapshots = spec.snapshots
    heap = heap_mib(spec.heap, spec.resources, USUAL_ENGINE, _SHARE, _MOST_MIB)
    return Settings(
        # Spark does not start with less than the usual one.
        jvm_heap_mib=max(heap, HEAP_MIB),
        bootstrap=deployment.bootstrap,
        root=f"{deployment.root}/engines",
        # Not the volume's root, which may hold a lost+found.
        snapshots="/var/lib/espha/snapshots",
        snapshot_interval_s=snapshots.interval,
        snapshots_retained=snapshots.retain,
        # What is not asked for must not stand there: it would start engines again.
        **({"force_model": spec.force_model} if spec.force_model else {}),
        # One name for all of them, so that scaling restarts nobody.
        peers=f"{deployment.domain(ENGINE)}:{HTTP_PORT}",
    )


def _token(deployment: Deployment) -> Object:
    # Optional: engines start, and take over from each other, when nobody has made the Secret.
    key = {"name": token_name(deployment), "key": TOKEN_KEY, "optional": True}
    return {"name": variable("token"), "valueFrom": {"secretKeyRef": key}}
