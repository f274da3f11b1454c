"""A change of the model: what is next, how far it is, and which versions are still needed. Pure.

The engines do it by themselves, at a record of the order log: one that has been given the new model
runs it in the shadow of the old one. The operator only says when the log goes over to it, or that
it is not wanted any more.
"""

from dataclasses import dataclass
from typing import Literal

from espha.protocol.model_change import ModelAction
from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha_operator.api.deployment import ModelVersion
from espha_operator.status.facts import Facts, Verdict
from espha_operator.status.reasons import Reason

KEPT = 5
"""Versions that stay although nobody runs them; a roll-back goes to one of them."""
_DIGITS = 4
_RUNNING = (EngineState.ACTIVE, EngineState.STANDBY)


@dataclass(frozen=True)
class Change:
    """What to ask the active engine for.

    Attributes:
        action: nothing; go over to a model; or end one that is the next one.
        model: its digest.
        blind: no other engine can run it in the shadow.
    """

    action: Literal[ModelAction.SWITCH, ModelAction.END] | None = None
    model: str = ""
    blind: bool = False


def decide(facts: Facts) -> Change:
    """Decide what to ask the active engine for.

    1. A model that is not wanted is the next one no more.
    2. When an engine runs the wanted one in the shadow, in step, the log goes over to it.
    3. A deployment of one engine has nobody who could: it goes over when it has been given it.
    """
    engine = facts.active.engine if facts.active else None
    if engine is None or facts.planned is None or not engine.log_model:
        return Change()
    wanted = facts.planned.digest
    if engine.shadow and (engine.shadow != wanted or engine.log_model == wanted):
        return Change(ModelAction.END, engine.shadow)
    if engine.log_model == wanted:
        return Change()
    if _shadows(facts, wanted):
        return Change(ModelAction.SWITCH, wanted)
    if facts.deployment.spec.engines.replicas == 1 and engine.wanted == wanted:
        return Change(ModelAction.SWITCH, wanted, blind=True)
    return Change()


def _shadows(facts: Facts, model: str) -> list[ReplicaStatus]:
    """Return the engines that run a model in the shadow, in step, and have kept its state."""
    return [
        one
        for one in facts.engines
        if one.state is EngineState.SHADOW and one.engine and one.engine.model_digest == model
    ]


def running(facts: Facts) -> str:
    """Return the digest of the model that leads; that of the spec where it is not known."""
    wanted = facts.planned.digest if facts.planned else ""
    leads = facts.active.engine.log_model if facts.active and facts.active.engine else ""
    known = {one.digest for one in facts.versions}
    return leads if leads in known else wanted


def kept(facts: Facts) -> tuple[ModelVersion, ...]:
    """Return the versions that stay: those that somebody runs or has been given, and the newest."""
    used = {
        digest
        for one in facts.engines
        if one.engine
        for digest in (one.engine.model_digest, one.engine.log_model, one.engine.wanted)
    }
    return tuple(
        one for place, one in enumerate(facts.versions) if place < KEPT or one.digest in used
    )


def model_rolled_out(facts: Facts) -> Verdict:
    """Check that all engines run the wanted model, and say how far a change is."""
    model = facts.planned
    if model is None:
        return Verdict(Reason.NOT_STARTED, "Nothing starts before the model is valid.")
    if not facts.exists("engine"):
        return Verdict(Reason.WAITING, "Starts when everything that it needs is ready.")
    active, label = facts.active, model.label
    if active is None or active.engine is None:
        return Verdict(Reason.NO_ACTIVE_ENGINE, f"No engine is active; {label} is wanted.")
    wanted, leads = model.digest, active.engine.log_model
    if leads and leads != wanted:
        return _under_way(facts, active, leads)
    others = [
        one.name
        for one in facts.engines
        if one.engine and one.engine.model_digest not in ("", wanted)
    ]
    if others:
        return Verdict(Reason.FOLLOWING, f"{label} leads; {', '.join(others)} go over to it.")
    back = f" {_passed_over(facts)}" if facts.deployment.rollback else ""
    return Verdict(Reason.ROLLED_OUT, f"All engines that answer run {label}.{back}")


def _under_way(facts: Facts, active: ReplicaStatus, leads: str) -> Verdict:
    """Say how far a change is, or why it does not go on; the old model leads meanwhile."""
    model = facts.planned.digest if facts.planned else ""
    stays = f"{active.name} stays active with model {leads[:_DIGITS]}."
    for one in facts.engines:
        if one.state in _RUNNING or one.state is EngineState.SHADOW:
            continue
        engine = one.engine
        if one.message and (engine is None or engine.model_digest == model):
            text = f"{one.name} cannot run model {model[:_DIGITS]}: {one.message}"
            return Verdict(Reason.SHADOW_FAILED, f"{text.rstrip('.')}. {stays}")
        if engine and engine.model_digest == model:
            refusal = engine.shadow_refusal or f"{engine.lag_records} order records behind"
            text = f"{one.name} runs model {model[:_DIGITS]} in the shadow: {refusal}."
            return Verdict(Reason.IN_SHADOW, f"{text} {stays}")
    if _shadows(facts, model):
        why = facts.change or "the order log goes over to it"
        text = f"Model {model[:_DIGITS]} is in step: {why}."
        return Verdict(Reason.SWITCHING, f"{text} {stays}")
    return Verdict(
        Reason.NO_SHADOW, f"No engine has been given model {model[:_DIGITS]} yet. {stays}"
    )


def _passed_over(facts: Facts) -> str:
    return "The annotation espha.dev/rollback is why the model of the spec is passed over."
