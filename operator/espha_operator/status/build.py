"""The status, made of facts and of the status before."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from espha.protocol.states import EngineState
from espha_operator.api.names import ROLE_LABEL
from espha_operator.api.status import Condition, Phase, Status, UsedImages
from espha_operator.status.adapters import adapters
from espha_operator.status.checks import CHAIN, judge
from espha_operator.status.facts import Facts, Verdict
from espha_operator.status.model_change import running
from espha_operator.status.reasons import Reason

# Characters of an error in a message.
_LONGEST = 300


def build(facts: Facts, before: Status, now: datetime) -> Status:
    """Return the new status; conditions keep their time as long as their state is the same."""
    verdicts = judge(facts, _unasked(facts, before) if facts.begins else {})
    generation = facts.deployment.generation
    return Status(
        phase=_phase(facts, verdicts),
        observed_generation=generation,
        active=facts.active.name if facts.active else None,
        engines=_of(_in_sync(facts), facts.deployment.spec.engines.replicas),
        kafka=_servers(facts, "kafka"),
        zookeeper=_servers(facts, "zookeeper"),
        model=_model(facts) or before.model,
        failovers=facts.active.epoch - 1 if facts.active else before.failovers,
        engine_replicas=facts.set("engine").exist,
        selector=selector(facts.deployment.name, "engine"),
        prefix=facts.planned.prefix if facts.planned else before.prefix,
        images=_images(facts, before),
        adapters=adapters(facts, before.adapters),
        conditions=conditions(before.conditions, verdicts, generation, now),
    )


def _unasked(facts: Facts, before: Status) -> dict[str, Verdict]:
    """Return what held before, of what nobody has looked at since: it is no news that it holds.

    Of an older spec it says nothing: with `Ready` it would say that the new one is fulfilled.
    """
    seen = {"TopicsReady": facts.topics, "VolumesFit": facts.disks, "StorageLow": facts.disks}
    then = [before.condition(name) for name, found in seen.items() if found is None]
    reasons = {str(one): one for one in Reason}
    return {
        one.type: Verdict(reasons[one.reason], one.message)
        for one in then
        if one and one.status == "True" and one.reason in reasons
        if one.observed_generation == facts.deployment.generation
    }


def _model(facts: Facts) -> str | None:
    """Return the label of the model that leads; of the planned one where that is not known.

    None: it is the one that led before, or there is none.
    """
    planned, active = facts.planned, facts.active
    if planned is None:
        return None
    if running(facts) == planned.digest:
        return planned.label
    return active.engine.model[:_LONGEST] if active and active.engine else None


def _images(facts: Facts, before: Status) -> UsedImages | None:
    """Return what the pods are made of: what was refused does not count."""
    if facts.upgrade is None or (facts.error and before.images):
        return before.images
    return facts.upgrade.used


def conditions(
    before: list[Condition], verdicts: Mapping[str, Verdict], generation: int, now: datetime
) -> list[Condition]:
    """Return a condition for each verdict."""
    known = {one.type: one for one in before}
    return [
        _condition(known.get(name), name, one, generation, now) for name, one in verdicts.items()
    ]


def failed(before: Status, why: str, generation: int, now: datetime) -> Status:
    """Return the status after a step that did not come to its end; the rest stays."""
    text = why.split("\n", 1)[0][:_LONGEST]
    after = _with(before, _stuck(Verdict(Reason.RECONCILE_FAILED, text)), generation, now)
    return after.model_copy(update={"phase": "Degraded"}) if before.active else after


def _stuck(verdict: Verdict) -> dict[str, Verdict]:
    """Return what is said of a deployment with which nothing is done."""
    return {
        "Progressing": replace(verdict, holds=False),
        "Stalled": replace(verdict, holds=True),
        "Ready": verdict,
    }


def _with(
    before: Status, verdicts: Mapping[str, Verdict], generation: int, now: datetime
) -> Status:
    """Return a status with some conditions changed, and the others as they were."""
    changed = {one.type: one for one in conditions(before.conditions, verdicts, generation, now)}
    kept = {one.type: changed.pop(one.type, one) for one in before.conditions}
    every = {**kept, **changed}
    every["Ready"] = every.pop("Ready")  # people look at the last one first
    update = {"observed_generation": generation, "conditions": list(every.values())}
    return before.model_copy(update=update)


def selector(name: str, component: str) -> str:
    """Label selector of a component's objects."""
    return (
        f"app.kubernetes.io/name=espha,app.kubernetes.io/instance={name},"
        f"app.kubernetes.io/component={component}"
    )


def roles(facts: Facts, labelled: Mapping[str, str | None]) -> dict[str, str]:
    """Pods whose role label must change, with the new value.

    Where nobody says to be active, the label stays where it is: an answer that was late would
    take the Service from an engine that publishes. One that has died is not ready.

    Args:
        facts: what the engines say.
        labelled: engine pods with the value of their label `espha.dev/role`.
    """
    if facts.active is None:
        return {name: "standby" for name, role in labelled.items() if role is None}
    active = facts.active.name
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


# What goes away by itself, when an engine comes back and catches up.
_PASSING = (Reason.ENGINES_MISSING, Reason.BEHIND, Reason.NO_ANSWER)
_BROKEN = (EngineState.REFUSED, EngineState.FAILED, EngineState.DIVERGED)


def _phase(facts: Facts, verdicts: Mapping[str, Verdict]) -> Phase:
    if not verdicts["ModelValid"].ok:
        return "Invalid"
    if facts.paused:
        return "Paused"
    if verdicts["Ready"].ok:
        return "Ready"
    if facts.active is None:
        return "Starting" if verdicts["Progressing"].ok else "Unavailable"
    if verdicts["Progressing"].ok:
        return "Updating"
    return "Recovering" if _recovers(facts, verdicts) else "Degraded"


def _recovers(facts: Facts, verdicts: Mapping[str, Verdict]) -> bool:
    """Tell whether all that is missing are engines that come back."""
    failed = [verdicts[name].reason for name, _ in CHAIN if not verdicts[name].ok]
    broken = any(one.state in _BROKEN for one in facts.engines)
    return not broken and not facts.error and all(reason in _PASSING for reason in failed)


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
