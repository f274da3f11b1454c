"""The API server, as far as the operator needs it: read, create, apply, patch, delete."""

import json
from collections.abc import Callable
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError

from espha_operator.api import GROUP, KIND, VERSION
from espha_operator.api.names import FIELD_MANAGER
from espha_operator.resources.meta import Object

API_VERSIONS = {
    "ConfigMap": "v1",
    "Service": "v1",
    "PersistentVolumeClaim": "v1",
    "Pod": "v1",
    "Secret": "v1",
    "Event": "v1",
    "StatefulSet": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
    KIND: f"{GROUP}/{VERSION}",
}
# Kinds that the operator makes, and therefore also looks through for what is not wanted any more.
MADE = ("ConfigMap", "Service", "PodDisruptionBudget", "StatefulSet")
# Seconds; a step must not hang on a connection that died silently.
TIMEOUT = 10


class Cluster:
    """A connection to the API server; every method blocks."""

    def __init__(self) -> None:
        """Use the pod's service account, or the user's kubeconfig outside of a cluster."""
        try:
            config.load_incluster_config()
        except ConfigException:
            config.load_kube_config()
        self._client = DynamicClient(client.ApiClient())

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None when there is none."""
        try:
            return self._call(self._kind(kind).get, name=name, namespace=namespace)
        except NotFoundError:
            return None

    def list(self, kind: str, namespace: str, selector: str) -> list[Object]:
        """Return the objects that match a label selector."""
        found = self._call(self._kind(kind).get, namespace=namespace, label_selector=selector)
        items: list[Object] = found["items"]
        return items

    def create(self, wanted: Object) -> None:
        """Make an object that must not exist yet."""
        namespace = wanted["metadata"]["namespace"]
        self._call(self._kind(wanted["kind"]).create, body=wanted, namespace=namespace)

    def apply(self, wanted: Object) -> None:
        """Apply on the server: the wanted fields become the operator's, others stay as they are."""
        self._call(
            self._kind(wanted["kind"]).server_side_apply,
            body=wanted,
            namespace=wanted["metadata"]["namespace"],
            name=wanted["metadata"]["name"],
            field_manager=FIELD_MANAGER,
            force_conflicts=True,
        )

    def apply_status(self, namespace: str, name: str, status: Object) -> None:
        """Set a deployment's status; fields that are not in it go away."""
        body = {
            "apiVersion": API_VERSIONS[KIND],
            "kind": KIND,
            "metadata": {"name": name, "namespace": namespace},
            "status": status,
        }
        self._call(
            self._kind(KIND).status.server_side_apply,
            body=body,
            namespace=namespace,
            name=name,
            field_manager=FIELD_MANAGER,
            force_conflicts=True,
        )

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        """Merge a change into an object; nothing happens when it has gone."""
        try:
            self._call(
                self._kind(kind).patch,
                body=change,
                namespace=namespace,
                name=name,
                content_type="application/merge-patch+json",
            )
        except NotFoundError:
            return

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object and what it owns; nothing happens when it has gone."""
        try:
            body = {"propagationPolicy": "Background"}
            self._call(self._kind(kind).delete, namespace=namespace, name=name, body=body)
        except NotFoundError:
            return

    def evict(self, namespace: str, pod: str, uid: str) -> None:
        """End a pod as a drain would: its disruption budget and its grace period are respected.

        Args:
            namespace: where it is.
            pod: its name.
            uid: its own; a newer pod of the same name stays.

        Raises:
            ApiException: 404 or 409: it has gone; 429: its budget does not allow it now.
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        self._call(self._kind("Pod").eviction.create, body=body, name=pod, namespace=namespace)

    def _kind(self, kind: str) -> Any:
        return self._client.resources.get(api_version=API_VERSIONS[kind], kind=kind)

    @staticmethod
    def _call(method: Callable[..., Any], **arguments: Any) -> Object:
        answer: Object = method(**arguments, _request_timeout=TIMEOUT).to_dict()
        return answer


def reason(error: ApiException) -> str:
    """Return what the API server says, in its own sentence."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"{error.status} {error.reason}"
