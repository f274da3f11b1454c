"""The plan: which objects a deployment should have now. Pure."""

from dataclasses import replace

from espha_operator.api.adapters import ROLES
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.reconcile.rolling import engines_kept
from espha_operator.resources import adapters, engines, kafka, zookeeper
from espha_operator.resources.meta import Object
from espha_operator.status import checks
from espha_operator.status.facts import Facts


def plan(facts: Facts) -> list[Object] | None:
    """Return the objects wanted at this stage; None when nothing may be changed.

    1. An invalid model starts nothing, and stops nothing that runs.
    2. ZooKeeper, Kafka and the checked model come first.
    3. Engines start when all topics exist.
    4. Adapters start when an engine is active.
    5. What has started once stays wanted: a broker's death must not take the engines along.
    """
    if not isinstance(facts.model, ModelFacts):
        return None
    deployment = facts.deployment
    wanted = [*zookeeper.zookeeper(deployment), *kafka.kafka(deployment)]
    wanted += engines.model(deployment, facts.model)
    if facts.exists("engine") or _may_start_engines(facts):
        wanted += engines.engines(_with_engines(facts), facts.model)
    if _adapters_exist(facts) or facts.active is not None:
        wanted += adapters.adapters(deployment, facts.model, facts.shared_claims)
    return wanted


def _with_engines(facts: Facts) -> Deployment:
    """Return the deployment with as many engines as there are to be until the active one stays."""
    deployment = facts.deployment
    kept = deployment.spec.engines.model_copy(update={"replicas": engines_kept(facts)})
    spec = deployment.spec.model_copy(update={"engines": kept})
    return replace(deployment, spec=spec)


def _may_start_engines(facts: Facts) -> bool:
    has_quorum = facts.deployment.spec.zookeeper.external or checks.zookeeper_ready(facts).ok
    return bool(has_quorum) and checks.topics_ready(facts).ok


def _adapters_exist(facts: Facts) -> bool:
    starts = tuple(f"{facts.deployment.name}-{way}-" for way in ROLES)
    return any(name.startswith(starts) for name in facts.sets)
