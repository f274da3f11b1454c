"""The API server, as far as the operator needs it: read, create, apply, patch, delete."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, ResourceNotFoundError

from espha_operator.api import GROUP, KIND, VERSION
from espha_operator.api.names import FIELD_MANAGER
from espha_operator.reconcile.store import Store, parse_selector
from espha_operator.reconcile.watch import WATCHED, Watch
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
    "Lease": "coordination.k8s.io/v1",
    KIND: f"{GROUP}/{VERSION}",
}
# What the API server answers that may pass by itself.
_BUSY = (408, 409, 429)
# Kinds that the operator makes, and therefore also looks through for what is not wanted any more.
MADE = ("ConfigMap", "Service", "PodDisruptionBudget", "StatefulSet")
# What is not a deployment's, or harms nobody when two operators make it.
UNGUARDED = ("Lease", "Secret", "Event", "ValidatingWebhookConfiguration")
# `Cluster.list` hides the type in annotations.
Objects = list[Object]
Watches = list[Watch]
# Seconds; a step must not hang on a connection that died silently.
TIMEOUT = 10
# Seconds without a word on a watch, bookmarks included, before the connection counts as dead.
SILENCE = 120
# Objects in one answer to a list.
PAGE = 500


class MissingKindError(Exception):
    """The API server does not know the operator's own kind."""


class Cluster:
    """A connection to the API server; every method blocks.

    What is watched is read from the store, and costs nothing: the resources themselves, and what
    has the operator's label.

    Attributes:
        store: what the watches have brought.
        requests: how many requests were made, by verb and kind.
    """

    def __init__(self) -> None:
        """Use the pod's service account, or the user's kubeconfig outside of a cluster."""
        try:
            config.load_incluster_config()
        except ConfigException:
            config.load_kube_config()
        settings = client.Configuration.get_default_copy()
        # One more try with a fresh connection: the API server closes idle ones. Not three: the
        # next step is the next try.
        settings.retries = urllib3.Retry(1, redirect=0, respect_retry_after_header=False)
        self._client = DynamicClient(client.ApiClient(settings))
        self.store = Store()
        self.requests: Counter[tuple[str, str]] = Counter()
        self._counting = threading.Lock()
        self._watches: Watches = []
        for kind in (*WATCHED, "Lease", "Secret", "Event"):
            self._kind(kind)  # what the client finds out, it does not guard against threads
        self._allow: Callable[[str], None] = lambda namespace: None

    def guard(self, allow: Callable[[str], None]) -> None:
        """Have a function called before each write, with the namespace; it may raise."""
        self._allow = allow

    def watch(self, namespaces: tuple[str, ...]) -> Watches:
        """Watch what has the operator's label, in these namespaces; none: in all of them."""
        self._watches = [
            Watch(self, self.store, kind, namespace)
            for namespace in namespaces or ("",)
            for kind in WATCHED
        ]
        for one in self._watches:
            one.start()
        return self._watches

    def require_kind(self, namespaces: tuple[str, ...]) -> None:
        """Look whether the operator's own kind is there.

        Raises:
            MissingKindError: it is not, with a sentence on what to do.
        """
        try:
            self._kind(KIND)
            for namespace in namespaces or ("",):
                self._page(KIND, namespace, "", limit=1)
        except (NotFoundError, ResourceNotFoundError):
            raise MissingKindError(
                f"The API server does not know the kind {KIND}: install the "
                "CustomResourceDefinition (crds/esphadeployments.yaml, or crds.enabled in the "
                "chart); the operator ends, and looks again when it is started again."
            ) from None

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None when there is none. Asks for what is not in the store."""
        known = self.store.get(kind, namespace, name)
        if known is not None or kind == KIND:
            return known
        return self.read(kind, namespace, name)

    def read(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object as the API server has it now, or None when there is none."""
        try:
            return self._call("get", kind, self._kind(kind).get, name=name, namespace=namespace)
        except NotFoundError:
            return None

    def list(self, kind: str, namespace: str, selector: str) -> list[Object]:
        """Return the objects that match a label selector, `key=value,…`."""
        if self._watches and kind in WATCHED:
            return self.store.list(kind, namespace, parse_selector(selector))
        return self.list_all(kind, namespace, selector)[0]

    def list_all(self, kind: str, namespace: str, selector: str) -> tuple[Objects, str]:
        """Return the objects of a namespace (empty: of all), and the version of the list."""
        page = self._page(kind, namespace, selector)
        found: Objects = page["items"]
        while following := page["metadata"].get("continue"):
            page = self._page(kind, namespace, selector, _continue=following)
            found += page["items"]
        known = {"apiVersion": API_VERSIONS[kind], "kind": kind}
        return [{**known, **one} for one in found], page["metadata"]["resourceVersion"]

    def events(
        self, kind: str, namespace: str, selector: str, version: str, life: int
    ) -> Iterator[Object]:
        """Yield what happens to objects after a version, for some seconds."""
        self._count("watch", kind)
        answer = self._kind(kind).get(
            namespace=namespace or None,
            label_selector=selector,
            resource_version=version,
            timeout_seconds=life,
            watch=True,
            allow_watch_bookmarks=True,
            serialize=False,
            _request_timeout=(TIMEOUT, SILENCE),
        )
        try:
            for line in answer:
                yield json.loads(line)
        finally:
            answer.close()

    def create(self, wanted: Object) -> None:
        """Make an object that must not exist yet."""
        kind, namespace = wanted["kind"], wanted["metadata"]["namespace"]
        self._write("create", kind, self._kind(kind).create, namespace=namespace, body=wanted)

    def apply(self, wanted: Object) -> Object:
        """Apply on the server: the wanted fields become the operator's, others stay as they are.

        Returns:
            The object as it is then.
        """
        kind, meta = wanted["kind"], wanted["metadata"]
        return self._write(
            "apply",
            kind,
            self._kind(kind).server_side_apply,
            body=wanted,
            namespace=meta["namespace"],
            name=meta["name"],
            field_manager=FIELD_MANAGER,
            force_conflicts=True,
        )

    def apply_status(self, namespace: str, name: str, status: Object) -> Object:
        """Set a deployment's status; fields that are not in it go away. Return the deployment."""
        body = {
            "apiVersion": API_VERSIONS[KIND],
            "kind": KIND,
            "metadata": {"name": name, "namespace": namespace},
            "status": status,
        }
        return self._write(
            "status",
            KIND,
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
            self._write(
                "patch",
                kind,
                self._kind(kind).patch,
                body=change,
                namespace=namespace,
                name=name,
                content_type="application/merge-patch+json",
            )
        except NotFoundError:
            return

    def replace(self, wanted: Object) -> Object:
        """Put an object in the place of the one that has its `resourceVersion`."""
        kind, meta = wanted["kind"], wanted["metadata"]
        return self._call(
            "update",
            kind,
            self._kind(kind).replace,
            namespace=meta["namespace"],
            name=meta["name"],
            body=wanted,
        )

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        uid: str = "",
        *,
        orphan: bool = False,
        grace: int | None = None,
    ) -> None:
        """Delete an object and what it owns; nothing happens when it has gone.

        Args:
            kind: of the object.
            namespace: where it is.
            name: of the object.
            uid: that it must have; empty: any.
            orphan: what it owns stays.
            grace: seconds that a pod has for its end, 0: nobody waits for its node's word; None:
                as many as it says itself.
        """
        body: Object = {"propagationPolicy": "Orphan" if orphan else "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            kinds = self._kind(kind)
            self._write("delete", kind, kinds.delete, namespace=namespace, name=name, body=body)
        except NotFoundError:
            return
        except ConflictError:
            if not uid:
                raise

    def _page(self, kind: str, namespace: str, selector: str, **more: Any) -> Object:
        return self._call(
            "list",
            kind,
            self._kind(kind).get,
            namespace=namespace or None,
            label_selector=selector or None,
            **{"limit": PAGE, **more},
        )

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
        evictions = self._kind("Pod").eviction
        self._write("evict", "Pod", evictions.create, body=body, name=pod, namespace=namespace)

    def _kind(self, kind: str) -> Any:
        return self._client.resources.get(api_version=API_VERSIONS[kind], kind=kind)

    def _write(self, verb: str, kind: str, method: Callable[..., Any], **arguments: Any) -> Object:
        if kind not in UNGUARDED:
            self._allow(arguments["namespace"])
        return self._call(verb, kind, method, **arguments)

    def _call(self, verb: str, kind: str, method: Callable[..., Any], **arguments: Any) -> Object:
        self._count(verb, kind)
        answer = method(**arguments, serialize=False, _request_timeout=TIMEOUT)
        found: Object = json.loads(answer.data)
        return found

    def _count(self, verb: str, kind: str) -> None:
        with self._counting:
            self.requests[verb, kind] += 1


def is_refusal(error: ApiException) -> bool:
    """Tell whether the API server would say the same again."""
    status = error.status or 500
    return 400 <= status < 500 and status not in _BUSY


def reason(error: ApiException) -> str:
    """Return what the API server says, in its own sentence."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"{error.status} {error.reason}"
