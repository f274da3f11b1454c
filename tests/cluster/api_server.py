"""The API server of the local cluster, asked what it would take, without making anything."""

import functools
import json
from typing import Any

from kubernetes import config
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient

from tools.offline_cluster import clients

Object = dict[str, Any]
# What it says besides: of rules that it has not come to, and of columns that it cannot show.
_BESIDES = ("some validation rules were not checked", "accessor error")


@functools.cache
def connection() -> DynamicClient:
    """Return a connection with the local cluster's kubeconfig."""
    made = config.new_client_from_config(str(clients.kubeconfig()))
    return DynamicClient(made)


@functools.cache
def _kind(api_version: str, kind: str) -> Any:
    return connection().resources.get(api_version=api_version, kind=kind)


def refused(body: Object, namespace: str) -> list[tuple[str, str]]:
    """Return field and message of all that the API server would refuse; nothing is made."""
    try:
        _kind(body["apiVersion"], body["kind"]).create(
            body=body,
            namespace=namespace,
            query_params=[("dryRun", "All"), ("fieldValidation", "Strict")],
        )
    except ApiException as error:
        status = json.loads(error.body)
        causes = (status.get("details") or {}).get("causes") or []
        told = [(one.get("field", ""), one.get("message", "")) for one in causes]
        found = [one for one in told if not any(text in one[1] for text in _BESIDES)]
        return found or [("", status["message"])]
    return []
