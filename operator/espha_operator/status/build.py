"""The status, made of facts and of the status before."""

from collections.abc import Mapping
from datetime import UTC, datetime

from espha_operator.api.deployment import ModelFacts
from espha_operator.api.names import ROLE_LABEL
from espha_operator.api.status import Condition, Phase, Status
from espha_operator.status.checks import judge
from espha_operator.status.facts import Facts, Verdict


def build(facts: Facts, before: Status, now: datetime) -> Status:
    """Return the new status; conditions keep their time as long as their state is the same."""
    verdicts = judge(facts)
    generation = facts.deployment.generation
    return Status(
        phase=_phase(facts, verdicts),
        observed_generation=generation,
        active=facts.active.name if facts.active else None,
        engines=_of(_in_sync(facts), facts.deployment.spec.engines.replicas),
        kafka=_servers(facts, "kafka"),
        zookeeper=_servers(facts, "zookeeper"),
        model=facts.model.label if isinstance(facts.model, ModelFacts) else before.model,
        failovers=facts.active.epoch - 1 if facts.active else before.failovers,
        engine_replicas=facts.set("engine").exist,
        selector=selector(facts.deployment.name, "engine"),
        prefix=facts.model.prefix if isinstance(facts.model, ModelFacts) else before.prefix,
        conditions=conditions(before.conditions, verdicts, generation, now),
    )


def conditions(
    before: list[Condition], verdicts: Mapping[str, Verdict], generation: int, now: datetime
) -> list[Condition]:
    """Return a condition for each verdict."""
    known = {one.type: one for one in before}
    return [
        _condition(known.get(name), name, one, generation, now) for name, one in verdicts.items()
    ]


def refused(before: Status, verdict: Verdict, generation: int, now: datetime) -> Status:
    """Return the status of a spec that cannot even be read; the rest stays as it was."""
    verdicts = {"ModelValid": verdict, "Ready": verdict}
    changed = conditions(before.conditions, verdicts, generation, now)
    kept = [one for one in before.conditions if one.type not in verdicts]
    update = {"phase": "Invalid", "observed_generation": generation}
    return before.model_copy(update={**update, "conditions": [changed[0], *kept, changed[1]]})


def selector(name: str, component: str) -> str:
    """Label selector of a component's objects."""
    return (
        f"app.kubernetes.io/name=espha,app.kubernetes.io/instance={name},"
        f"app.kubernetes.io/component={component}"
    )


def roles(facts: Facts, labelled: Mapping[str, str | None]) -> dict[str, str]:
    """Pods whose role label must change, with the new value.

    Args:
        facts: what the engines say.
        labelled: engine pods with the value of their label `espha.dev/role`.
    """
    active = facts.active.name if facts.active else None
    wanted = {name: "active" if name == active else "standby" for name in labelled}
    return {name: role for name, role in wanted.items() if labelled[name] != role}


def role_patch(role: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the change of a pod that gives it a role."""
    return {"metadata": {"labels": {ROLE_LABEL: role}}}


def _condition(
    before: Condition | None, name: str, verdict: Verdict, generation: int, now: datetime
) -> Condition:
    status = "True" if verdict.ok else "False"
    same = before is not None and before.status == status
    changed = before.last_transition_time if before and same else _stamp(now)
    return Condition(
        type=name,
        status=status,
        reason=verdict.reason,
        message=verdict.message,
        last_transition_time=changed,
        observed_generation=generation,
    )


def _phase(facts: Facts, verdicts: Mapping[str, Verdict]) -> Phase:
    if not verdicts["ModelValid"].ok:
        return "Invalid"
    if verdicts["Ready"].ok:
        return "Ready"
    return "Degraded" if facts.active else "Starting"


def _in_sync(facts: Facts) -> int:
    return sum(engine.in_sync for engine in facts.engines)


def _servers(facts: Facts, component: str) -> str:
    spec = facts.deployment.spec
    servers = spec.kafka if component == "kafka" else spec.zookeeper
    if servers.external:
        return "external"
    ready = facts.set(component).ready
    return _of(min(ready, facts.serving) if component == "zookeeper" else ready, servers.replicas)


def _of(ready: int, wanted: int) -> str:
    return f"{ready}/{wanted}"


def _stamp(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
