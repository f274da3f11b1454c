"""The plan: which objects a deployment should have now. Pure."""

import json
from collections.abc import Container, Iterable
from dataclasses import replace

from espha_operator.api.adapters import ROLES, Adapter
from espha_operator.api.deployment import Deployment
from espha_operator.api.names import APPLIED
from espha_operator.reconcile.rolling import engines_kept
from espha_operator.resources import adapters, engines, kafka, zookeeper
from espha_operator.resources.meta import Object, checksum
from espha_operator.status import checks, model_change
from espha_operator.status.facts import Facts, Promise
from espha_operator.status.storage import DiskFacts


def plan(facts: Facts) -> list[Object] | None:
    """Return the objects wanted at this stage; None when nothing may be changed.

    1. Without a model that is valid, or was, nothing starts and nothing stops.
    2. ZooKeeper, Kafka and the checked model come first.
    3. Engines start when all topics exist.
    4. Adapters start when an engine is active.
    5. What has started once stays wanted: a broker's death must not take the engines along; nor
       must it be forgotten while its StatefulSet is made anew for larger volumes.
    6. Servers do not start on kept volumes of another number of them, nor before these are known.
    """
    model, deployment = facts.planned, facts.deployment
    if model is None or facts.disks is None:
        return None
    wanted: list[Object] = []
    if checks.may_start(facts, "zookeeper"):
        wanted += zookeeper.zookeeper(deployment)
    if checks.may_start(facts, "kafka"):
        wanted += kafka.kafka(deployment, _may_format(facts.disks))
    wanted += engines.model(deployment, model, model_change.kept(facts))
    if facts.exists("engine") or _named(facts, "engine") or _may_start_engines(facts):
        wanted += engines.engines(_with_engines(facts), model)
    if _adapters_exist(facts) or _named(facts, "adapter") or facts.active is not None:
        wanted += adapters.adapters(
            _without(deployment, _misfits(facts)), model_change.running(facts), facts.shared_claims
        )
    closed = {f"{deployment.name}-{component}" for component in facts.guarded}
    return [_signed(_closed(thing, closed)) for thing in wanted]


def _may_format(disks: DiskFacts) -> str:
    """Return which brokers may begin with an empty volume, as `kafka-start` reads it."""
    if not disks.formatted:
        return kafka.NEW
    return "".join(f"{broker}\n" for broker in sorted(disks.may_format))


def kept(facts: Facts) -> frozenset[str]:
    """Return names of objects that stay as they are: of adapters that do not fit the model."""
    misfits = _misfits(facts)
    if not misfits:
        return frozenset()
    name = facts.deployment.name
    return frozenset([f"{name}-adapter-headless", *(f"{name}-{one.label}" for one in misfits)])


def promised(wanted: Iterable[Object]) -> dict[str, Promise]:
    """Return what the StatefulSets among wanted objects are to be, by name."""
    return {
        thing["metadata"]["name"]: Promise(
            applied=thing["metadata"]["annotations"][APPLIED],
            image=thing["spec"]["template"]["spec"]["containers"][0]["image"],
        )
        for thing in wanted
        if thing["kind"] == "StatefulSet"
    }


def _misfits(facts: Facts) -> list[Adapter]:
    """Return the adapters that name a window which the planned model does not have."""
    model = facts.planned
    if model is None or model is facts.model:
        return []
    every = facts.deployment.spec.adapters.every
    return [one for one in every if one.window not in model.windows(one)]


def _without(deployment: Deployment, gone: list[Adapter]) -> Deployment:
    adapters = deployment.spec.adapters
    left = {
        field: [one for one in getattr(adapters, field) if one not in gone]
        for field in ("inputs", "outputs")
    }
    spec = deployment.spec.model_copy(update={"adapters": adapters.model_copy(update=left)})
    return replace(deployment, spec=spec)


def _closed(thing: Object, closed: Container[str]) -> Object:
    """Return a disruption budget that allows nothing, where its pods may not be evicted now."""
    if thing["kind"] != "PodDisruptionBudget" or thing["metadata"]["name"] not in closed:
        return thing
    return {**thing, "spec": {**thing["spec"], "maxUnavailable": 0}}


def _signed(thing: Object) -> Object:
    """Give a StatefulSet a fingerprint of its spec: what is read back tells if it has got it."""
    if thing["kind"] != "StatefulSet":
        return thing
    meta = thing["metadata"]
    mark = {APPLIED: checksum(json.dumps(thing["spec"], sort_keys=True))}
    return {**thing, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **mark}}}


def _with_engines(facts: Facts) -> Deployment:
    """Return the deployment with as many engines as there are to be until the active one stays."""
    deployment = facts.deployment
    kept = deployment.spec.engines.model_copy(update={"replicas": engines_kept(facts)})
    spec = deployment.spec.model_copy(update={"engines": kept})
    return replace(deployment, spec=spec)


def _may_start_engines(facts: Facts) -> bool:
    has_quorum = facts.deployment.spec.zookeeper.external or checks.zookeeper_ready(facts).ok
    return bool(has_quorum) and checks.topics_ready(facts).ok


def _named(facts: Facts, component: str) -> bool:
    """Tell whether the Service that names a component's pods exists.

    It stays while their StatefulSet is deleted without them, and nobody sees what they say.
    """
    return f"{facts.deployment.name}-{component}-headless" in facts.services


def _adapters_exist(facts: Facts) -> bool:
    starts = tuple(f"{facts.deployment.name}-{way}-" for way in ROLES)
    return any(name.startswith(starts) for name in facts.sets)
