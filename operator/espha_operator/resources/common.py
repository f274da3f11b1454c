"""The kinds of objects that several components have."""

from dataclasses import dataclass, field
from typing import Any

from espha_operator.api.deployment import Deployment
from espha_operator.api.pods import PodTemplate
from espha_operator.api.quantities import Storage
from espha_operator.resources.meta import Object, labels, metadata
from espha_operator.resources.placement import CLAIM, claim_mark, dumped, placement

USER = 10001
CHECKSUM = "espha.dev/config"
STAYS_S = 3
"""For longer than a planned switchover takes."""


def config_map(deployment: Deployment, name: str, component: str, data: dict[str, str]) -> Object:
    """Return a ConfigMap with the given files."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(deployment, name, component),
        "data": data,
    }


def service(
    deployment: Deployment,
    name: str,
    component: str,
    ports: dict[str, int],
    *,
    headless: bool = False,
    peers: bool = False,
    extra_selector: dict[str, str] | None = None,
) -> Object:
    """Return a Service; one for peers, as a headless one is, leads to pods that are not ready."""
    spec: Object = {
        "selector": {**labels(deployment, component), **(extra_selector or {})},
        "ports": [
            {"name": port, "port": number, "targetPort": number, "protocol": "TCP"}
            for port, number in ports.items()
        ],
    }
    if headless:
        spec["clusterIP"] = "None"
    if headless or peers:
        spec["publishNotReadyAddresses"] = True
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(deployment, name, component),
        "spec": spec,
    }


def disruption_budget(
    deployment: Deployment,
    component: str,
    name: str = "",
    extra_selector: dict[str, str] | None = None,
) -> Object:
    """Return a budget: at most one pod may be evicted at a time.

    Args:
        deployment: whose budget it is.
        component: whose pods these are.
        name: its name; the component's when empty.
        extra_selector: labels of some of the component's pods.
    """
    pods = {**labels(deployment, component), **(extra_selector or {})}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(deployment, name or f"{deployment.name}-{component}", component),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": pods},
            # A pod that is not ready serves nobody: it must not keep a node from being drained.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


@dataclass(frozen=True)
class Pods:
    """What differs between the StatefulSets."""

    name: str
    component: str
    service: str
    replicas: int
    container: Object
    volumes: list[Object]
    checksum: str
    grace: int
    selector: dict[str, str] = field(default_factory=dict)
    storage: Storage | None = None
    volume: str = "data"
    """Name of the volume in `storage`."""
    template: PodTemplate | None = None
    scratch: str = "256Mi"
    """Size of /tmp."""
    claim: str | None = None
    """A volume that only one node can mount, and that other pods may have as well."""


def stateful_set(deployment: Deployment, pods: Pods) -> Object:
    """Return a StatefulSet with restricted pods; all of them start at the same time.

    Kubernetes restarts none of them for a newer template: see `reconcile.rolling`.
    """
    selector = {**labels(deployment, pods.component), **pods.selector}
    spec: Object = {
        "serviceName": pods.service,
        "replicas": pods.replicas,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": selector},
        "template": _template(deployment, pods, selector),
    }
    if pods.storage:
        spec["volumeClaimTemplates"] = [_claim(deployment, pods, pods.storage)]
        spec["persistentVolumeClaimRetentionPolicy"] = {
            "whenDeleted": deployment.spec.pvc_policy,
            "whenScaled": "Retain",
        }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(deployment, pods.name, pods.component),
        "spec": spec,
    }


def _template(deployment: Deployment, pods: Pods, selector: dict[str, str]) -> Object:
    template = pods.template or PodTemplate()
    shared = {CLAIM: claim_mark(pods.claim)} if pods.claim else {}
    return {
        "metadata": {
            "labels": {**(template.labels or {}), **selector, **shared},
            "annotations": {**(template.annotations or {}), CHECKSUM: pods.checksum},
        },
        "spec": _pod(deployment, pods, template, selector),
    }


def _pod(
    deployment: Deployment, pods: Pods, template: PodTemplate, selector: dict[str, str]
) -> Object:
    scratch = {"name": "tmp", "emptyDir": {"sizeLimit": pods.scratch}}
    made: Object = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pods.grace,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            # Not each file of a large volume at each start.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **placement(template, selector, pods.claim),
        "containers": [_restricted(deployment, pods.container, template)],
        "volumes": [*pods.volumes, scratch],
    }
    secrets = _pull_secrets(deployment, template)
    return {**made, "imagePullSecrets": secrets} if secrets else made


def _pull_secrets(deployment: Deployment, template: PodTemplate) -> list[Object]:
    given = deployment.spec.image_pull_secrets
    names = deployment.images.image_pull_secrets if given is None else [one.name for one in given]
    own = [one.name for one in template.image_pull_secrets or []]
    return [{"name": name} for name in dict.fromkeys([*names, *own])]


def _restricted(deployment: Deployment, container: Object, template: PodTemplate) -> Object:
    mounts = [*container.get("volumeMounts", []), {"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    policy = deployment.spec.image_pull_policy or deployment.images.image_pull_policy
    return {
        **container,
        "env": [*container.get("env", []), *(dumped(one) for one in template.env or [])],
        "imagePullPolicy": policy,
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _claim(deployment: Deployment, pods: Pods, storage: Storage) -> Object:
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(storage.size)}},
    }
    if storage.storage_class_name:
        spec["storageClassName"] = storage.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": pods.volume, "labels": labels(deployment, pods.component)},
        "spec": spec,
    }


def stays_a_while() -> Object:
    """Return what lets a server go on for some seconds when its pod is to end.

    A drain ends all pods of a node at once. The active engine among them hands over meanwhile, for
    which it needs its broker and its ZooKeeper server.
    """
    return {"lifecycle": {"preStop": {"exec": {"command": ["sleep", str(STAYS_S)]}}}}


def tcp_probes(port: int) -> dict[str, Any]:
    """Return probes of a server that need no program in the image.

    At first it may take an hour to read its logs; later it is started again when it has taken no
    connection for a minute.
    """

    def probe(period: int, failures: int) -> dict[str, Any]:
        check = {"tcpSocket": {"port": port}}
        return {**check, "periodSeconds": period, "failureThreshold": failures}

    return {
        "startupProbe": probe(2, 1800),
        "readinessProbe": probe(2, 3),
        "livenessProbe": {**probe(10, 6), "timeoutSeconds": 5},
    }
