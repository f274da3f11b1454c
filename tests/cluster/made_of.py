"""Everything that is made of a resource, brought to the API server without making it."""

from typing import Any

from cluster import api_server, bad_resources, random_resources
from espha.protocol.states import EngineState
from espha_operator.api.deployment import Deployment
from espha_operator.api.images import Images
from espha_operator.reconcile import plan
from espha_operator.reconcile.models import parse
from espha_operator.resources import meta
from espha_operator.status.facts import Facts, SetFacts
from espha_operator.status.storage import DiskFacts
from support.status import engine_status
from unit.operator.samples import MODEL

Object = dict[str, Any]


def check(namespace: str, count: int) -> None:
    """Assert of random resources: what is made of one that is taken is taken.

    Args:
        namespace: where pods have to be restricted.
        count: of resources.
    """

    def refused(spec: Object) -> list[tuple[str, str]]:
        return api_server.refused(bad_resources.resource(spec, "random"), namespace)

    for seed in range(count):
        spec = random_resources.accepted(random_resources.spec(seed), refused)
        resource = bad_resources.resource(spec, "random")
        resource["metadata"] |= {"namespace": namespace, "uid": "00000000-0", "generation": 1}
        deployment = parse(resource, Images())
        assert isinstance(deployment, Deployment), deployment
        made = _objects(deployment)
        pods = [_pod(one) for one in made if one["kind"] == "StatefulSet"]
        for one in [*made, *pods]:
            name = one["metadata"]["name"]
            assert api_server.refused(one, namespace) == [], f"{seed}: {one['kind']} {name}"


def _objects(deployment: Deployment) -> list[Object]:
    """Return all that the plan has for a deployment that is up, and the Secret with its token."""
    name = deployment.name
    started = {f"{name}-{one}": SetFacts(1, 1, 1) for one in ("zookeeper", "kafka", "engine")}
    active = engine_status(f"{name}-engine-0", EngineState.ACTIVE)
    facts = Facts(deployment, MODEL, started, engines=(active,), disks=DiskFacts())
    return [*(plan.plan(facts) or []), meta.token(deployment, "0" * 64)]


def _pod(made: Object) -> Object:
    """Return a pod as its StatefulSet makes it; accounts and priorities are others' objects."""
    template = made["spec"]["template"]
    spec = {
        name: value
        for name, value in template["spec"].items()
        if name not in ("serviceAccountName", "priorityClassName")
    }
    claims = made["spec"].get("volumeClaimTemplates", [])
    own = [{"name": one["metadata"]["name"], "emptyDir": {}} for one in claims]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": f"{made['metadata']['name']}-0"},
        "spec": {**spec, "volumes": [*spec["volumes"], *own]},
    }
