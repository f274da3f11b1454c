"""`python -m espha_operator.smoke`: what `helm test` runs, in a pod of the release.

Nothing is stored: resources are only shown to the API server (dry run).
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from espha_operator.api import GROUP, KIND, PLURAL, VERSION
from espha_operator.reconcile.cluster import reason

# Seconds that a check may take to come true: the operator may just be starting.
PATIENCE = 60.0
MODEL = """<project name="smoke"><contqueries><contquery name="cq"><windows>
<window-source name="in" insert-only="true"><schema><fields>
<field name="id" type="int64" key="true"/></fields></schema></window-source>
</windows></contquery></contqueries></project>"""


class FailedError(Exception):
    """A check does not hold, with the reason."""


def resource(model: str = MODEL, **spec: Any) -> dict[str, Any]:
    """Return a resource to show to the API server."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"generateName": "smoke-"},
        "spec": {"model": {"inline": model}, **spec},
    }


def answer(namespace: str, body: dict[str, Any]) -> str:
    """Return why the API server refuses a resource; empty when it would take it."""
    try:
        client.CustomObjectsApi().create_namespaced_custom_object(
            GROUP, VERSION, namespace, PLURAL, body, dry_run="All"
        )
    except ApiException as error:
        return reason(error)
    return ""


def operator_ready(namespace: str, name: str) -> None:
    """Check that a pod of the operator is ready."""
    try:
        found = client.AppsV1Api().read_namespaced_deployment(name, namespace)
    except ApiException as error:
        raise FailedError(reason(error)) from None
    if not found.status.available_replicas:
        raise FailedError(f"no pod of deployment/{name} in {namespace} is ready")


def kind_served(namespace: str) -> None:
    """Check that the API server takes a good resource."""
    refusal = answer(namespace, resource())
    if refusal:
        raise FailedError(refusal)


def refused(namespace: str, body: dict[str, Any], words: str) -> None:
    """Check that the API server refuses a resource, with some words."""
    refusal = answer(namespace, body)
    if words not in refusal:
        raise FailedError(refusal or "a bad resource would be taken")


def hold(what: str, check: Callable[[], None], patience: float = PATIENCE) -> bool:
    """Say whether a check holds; try for some seconds."""
    end = time.monotonic() + patience
    while True:
        try:
            check()
        except FailedError as error:
            if time.monotonic() > end:
                print(f"FAILED  {what}: {error}", flush=True)
                return False
            time.sleep(1)
        else:
            print(f"ok      {what}", flush=True)
            return True


def main() -> None:
    """Check the release; exit with 1 when something does not hold."""
    parser = argparse.ArgumentParser(prog="python -m espha_operator.smoke")
    parser.add_argument("--operator", required=True, help="NAMESPACE/DEPLOYMENT of the operator")
    parser.add_argument("--namespace", required=True, help="where deployments may be made")
    parser.add_argument("--webhook", action="store_true", help="models are checked at admission")
    chosen = parser.parse_args()
    config.load_incluster_config()
    where, name = chosen.operator.split("/")
    two = resource(zookeeper={"replicas": 2})
    checks: dict[str, Callable[[], None]] = {
        "the operator is ready": lambda: operator_ready(where, name),
        f"the API server serves {KIND}": lambda: kind_served(chosen.namespace),
        "the API server refuses a bad spec": lambda: refused(
            chosen.namespace, two, "replicas must be 1, 3 or 5"
        ),
    }
    if chosen.webhook:
        torn = resource(MODEL.replace("</windows>", ""))
        checks["the webhook refuses a bad model"] = lambda: refused(
            chosen.namespace, torn, "spec.model.inline"
        )
    held = [hold(what, check) for what, check in checks.items()]
    raise SystemExit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
