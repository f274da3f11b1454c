"""A change of the model: what is next, how far it is, and which versions are still needed. Pure.

The engines do it by themselves, at a record of the order log: one that has been given the new model
runs it in the shadow of the old one. The operator only says when the log goes over to it, or that
it is not wanted any more.
"""

from dataclasses import dataclass
from typing import Literal

from espha.protocol.model_change import ModelAction
from espha.protocol.states import EngineState
from espha.protocol.status import EngineProgress, ReplicaStatus
from espha_operator.api.deployment import ModelVersion
from espha_operator.status.facts import Facts, Verdict, leading_model
from espha_operator.status.reasons import Reason

KEPT = 5
"""Versions that stay although nobody runs them; a roll-back goes to one of them."""
QUIET = 2
"""So many order records without input: what a model makes of input need not be waited for."""
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
    2. When an engine runs the wanted one in the shadow, in step, the log goes over to it; but not
       before it has taken input, where there is any, and not while it has refused all of that.
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
    shadows = _shadows(facts, wanted)
    if shadows:
        good = any(_has_seen(one) and not _refuses_all(one) for one in shadows.values())
        return Change(ModelAction.SWITCH, wanted) if good else Change()
    if facts.deployment.spec.engines.replicas == 1 and engine.wanted == wanted:
        return Change(ModelAction.SWITCH, wanted, blind=True)
    return Change()


def _shadows(facts: Facts, model: str) -> dict[str, EngineProgress]:
    """Return the engines that run a model in the shadow, in step, and how far they are."""
    return {
        one.name: one.engine
        for one in facts.engines
        if one.state is EngineState.SHADOW and one.engine and one.engine.model_digest == model
    }


def _has_seen(shadow: EngineProgress) -> bool:
    """Tell whether a model has taken input, or none has come for some time."""
    return shadow.events_in > 0 or shadow.batches >= QUIET


def _refuses_all(shadow: EngineProgress) -> bool:
    """Tell whether a model has made dead letters of all its input, since it began.

    Several windows may refuse one record, each with a letter of its own.
    """
    return 0 < shadow.events_in <= shadow.dead_letters


def running(facts: Facts) -> str:
    """Return the digest of the model that leads; that of the spec where it is not known."""
    wanted = facts.planned.digest if facts.planned else ""
    leads = leading_model(facts.engines, facts.led)
    known = {one.digest for one in facts.versions}
    return leads if leads in known else wanted


def kept(facts: Facts) -> tuple[ModelVersion, ...]:
    """Return the versions that stay: those that somebody runs or has been given, and the newest."""
    used = {running(facts)} | {
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
    if not facts.has_engines:
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
    back = [_passed_over(facts)] if facts.deployment.rollback else []
    since = active.engine.since
    begun = [f"Its state began empty behind order record {since}."] if since else []
    said = [f"All engines that answer run {label}.", *begun, *back]
    return Verdict(Reason.ROLLED_OUT, " ".join(said))


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
    return _in_step(facts, model, stays)


def _in_step(facts: Facts, model: str, stays: str) -> Verdict:
    """Say why the log does not go over to a model that runs in the shadow, or that it does."""
    shadows, short = _shadows(facts, model), model[:_DIGITS]
    if not shadows:
        text = f"No engine has been given model {short} yet."
        return Verdict(Reason.NO_SHADOW, f"{text} {stays}")
    if all(map(_refuses_all, shadows.values())):
        name, one = next(iter(shadows.items()))
        counts = f"{_about(one.dead_letters)} dead letters of {_about(one.events_in)} input records"
        text = f"{name} runs model {short} in the shadow, and has made {counts}."
        return Verdict(Reason.SHADOW_FAILED, f"{text} {stays}")
    if not any(map(_has_seen, shadows.values())):
        text = f"Model {short} is in step, and has had no input yet."
        return Verdict(Reason.IN_SHADOW, f"{text} {stays}")
    why = facts.change or "the order log goes over to it"
    return Verdict(Reason.SWITCHING, f"Model {short} is in step: {why}. {stays}")


def _about(count: int) -> str:
    """Say a number so that the sentence does not change all the time."""
    step = 10 ** (len(str(count)) - 1)
    return str(count) if step == 1 else f"{count // step * step} or more"


def _passed_over(facts: Facts) -> str:
    return "The annotation espha.dev/rollback is why the model of the spec is passed over."
