"""What the API server takes of a resource, it takes of everything that is made of it."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from cluster import api_server, bad_resources, random_resources
from espha_operator.api.deployment import Deployment
from espha_operator.api.images import Images
from espha_operator.reconcile.models import parse
from espha_operator.resources import adapters, engines, kafka, zookeeper
from unit.operator.samples import MODEL

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
COUNT = int(os.environ.get("ESPHA_RANDOM_RESOURCES", "20"))
"""200 in `make test-day-two`."""
Object = dict[str, Any]


def objects(deployment: Deployment) -> list[Object]:
    return [
        *zookeeper.zookeeper(deployment),
        *kafka.kafka(deployment),
        *engines.model(deployment, MODEL),
        *engines.engines(deployment, MODEL),
        *adapters.adapters(deployment, MODEL),
        *adapters.adapters(deployment, MODEL, {"a", "data"}),
    ]


def pod(made: Object) -> Object:
    """A pod as its StatefulSet makes it; accounts and priorities are others' objects."""
    template = made["spec"]["template"]
    spec = {
        name: value
        for name, value in template["spec"].items()
        if name not in ("serviceAccountName", "priorityClassName")
    }
    metadata = {**template["metadata"], "name": f"{made['metadata']['name']}-0"}
    volumes = [
        *spec["volumes"],
        *(
            {"name": claim["metadata"]["name"], "emptyDir": {}}
            for claim in made["spec"].get("volumeClaimTemplates", [])
        ),
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, "volumes": volumes},
    }


def test_all_objects_of_a_valid_resource_are_valid(operator: str) -> None:
    """Pods, too, in a namespace that takes restricted ones only."""

    def refused(spec: Object) -> list[tuple[str, str]]:
        return api_server.refused(bad_resources.resource(spec, "random"), operator)

    @settings(
        max_examples=COUNT,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(random_resources.specs())
    def check(wild: Object) -> None:
        spec = random_resources.accepted(wild, refused)
        resource = bad_resources.resource(spec, "random")
        resource["metadata"] |= {"namespace": operator, "uid": "00000000-0", "generation": 1}
        deployment = parse(resource, Images())
        assert isinstance(deployment, Deployment), deployment
        made = objects(deployment)
        pods = [pod(one) for one in made if one["kind"] == "StatefulSet"]
        for one in [*made, *pods]:
            assert api_server.refused(one, operator) == [], (one["kind"], one["metadata"]["name"])

    check()
