"""The kinds of objects that several components have."""

from dataclasses import dataclass, field
from typing import Any

from espha_operator.api.base import Storage
from espha_operator.api.deployment import Deployment
from espha_operator.resources.meta import Object, labels, metadata

USER = 10001
CHECKSUM = "espha.dev/config"


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
    extra_selector: dict[str, str] | None = None,
) -> Object:
    """Return a Service; a headless one names pods before they are ready, for their peers."""
    spec: Object = {
        "selector": {**labels(deployment, component), **(extra_selector or {})},
        "ports": [
            {"name": port, "port": number, "targetPort": number, "protocol": "TCP"}
            for port, number in ports.items()
        ],
    }
    if headless:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
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
    """Return a budget: at most one pod of a component may be evicted at a time.

    A pod that is not ready may always go: it serves nobody, and a drain must not wait for it.
    """
    selector = {**labels(deployment, component), **(extra_selector or {})}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(deployment, name or f"{deployment.name}-{component}", component),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector},
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
        "template": {
            "metadata": {"labels": selector, "annotations": {CHECKSUM: pods.checksum}},
            "spec": _pod(pods, selector),
        },
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


def _pod(pods: Pods, selector: dict[str, str]) -> Object:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector},
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pods.grace,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread],
        "containers": [_restricted(pods.container)],
        "volumes": [*pods.volumes, {"name": "tmp", "emptyDir": {}}],
    }


def _restricted(container: Object) -> Object:
    mounts = [*container.get("volumeMounts", []), {"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    return {
        **container,
        "imagePullPolicy": "IfNotPresent",
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


def tcp_probe(port: int) -> dict[str, Any]:
    """Return a readiness probe that needs no program in the image."""
    return {"tcpSocket": {"port": port}, "periodSeconds": 2, "failureThreshold": 3}
