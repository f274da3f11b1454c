"""Conditions about the whole: is it in service, on its way, stuck, held; and `Ready`.

`Available` is about now: an engine is active and commits. `Ready` is about the spec: all that it
asks for runs, and is whole. `Progressing` and `Stalled` say whether waiting helps; like `Paused`
they are true for what is out of the ordinary.
"""

from collections.abc import Mapping

from espha_operator.status import rollout, upgrade
from espha_operator.status.facts import Facts, Verdict, unordered_s
from espha_operator.status.reasons import Reason
from espha_operator.status.texts import listed

# Seconds for which input may wait for an order record; a failover, or a long batch, takes less.
LATE = 10.0


def summarise(facts: Facts, parts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Return the verdicts on the whole, `Ready` last.

    Args:
        facts: what is seen.
        parts: the verdicts on the parts, in the order in which a deployment comes up.
    """
    stalled = _stalled(facts, parts)
    behind = rollout.behind(facts)
    ready = _ready(facts, parts, behind)
    return {
        "Available": available(facts),
        "Progressing": _progressing(facts, stalled, ready, behind),
        "Stalled": stalled,
        "Paused": _paused(facts),
        "SpecUnderstood": _understood(facts),
        "UpToDate": upgrade.up_to_date(facts),
        **upgrade.webhook_serving(facts),
        "Ready": ready,
    }


def available(facts: Facts) -> Verdict:
    """Check that an engine is active, and commits."""
    if not facts.engines and facts.set("engine").ready:
        return Verdict(Reason.NO_ANSWER, "Engines are ready, but none answers the operator.")
    active = facts.active
    if active is None:
        return Verdict(Reason.NO_ACTIVE_ENGINE, "No engine is active.")
    if active.kafka_reachable is False:
        return Verdict(Reason.NOT_COMMITTING, f"{active.name} does not reach Kafka.")
    if unordered_s(facts.engines) > LATE:
        text = f"{active.name} has not taken its input for more than {LATE:.0f} s."
        return Verdict(Reason.NOT_COMMITTING, text)
    return Verdict(Reason.COMMITTING, f"{active.name} is active.")


def _ready(facts: Facts, parts: Mapping[str, Verdict], behind: list[str]) -> Verdict:
    if facts.error:
        return Verdict(Reason.APPLY_FAILED, facts.error)
    if not parts["ModelValid"].ok:
        return parts["ModelValid"]
    if behind:
        reason = Reason.PAUSED if facts.paused else Reason.ROLLING_OUT
        return Verdict(reason, listed(behind), holds=False)
    failed = next((verdict for verdict in parts.values() if not verdict.ok), None)
    return failed or Verdict(Reason.ALL_READY, parts["EnginesReady"].message)


def _progressing(facts: Facts, stalled: Verdict, ready: Verdict, behind: list[str]) -> Verdict:
    """Tell whether the deployment is on its way to what is wanted.

    That begins when something is missing or behind, and ends when all is ready. A pod that dies
    later is a loss, and not progress.
    """
    if facts.paused:
        return Verdict(Reason.PAUSED, "Nothing is changed.", holds=False)
    if stalled.ok:
        return Verdict(stalled.reason, stalled.message, holds=False)
    if behind:
        return Verdict(Reason.ROLLING_OUT, listed(behind))
    missing = rollout.missing(facts)
    if missing:
        return Verdict(Reason.STARTING, listed(missing))
    if facts.progressing and not ready.ok:
        return Verdict(Reason.STARTING, ready.message)
    return Verdict(Reason.COMPLETE, "All that is wanted now has come up.")


def _stalled(facts: Facts, parts: Mapping[str, Verdict]) -> Verdict:
    if facts.error:
        return Verdict(Reason.APPLY_FAILED, facts.error, holds=True)
    for part in parts.values():
        if part.reason.stalls and not part.ok:
            return Verdict(part.reason, part.message, holds=True)
    return Verdict(Reason.MOVING, "Nothing waits for anybody.")


def _paused(facts: Facts) -> Verdict:
    if facts.paused:
        return Verdict(Reason.PAUSED, "The operator changes nothing until the annotation goes.")
    return Verdict(Reason.NOT_PAUSED, "The operator does what is wanted.")


def _understood(facts: Facts) -> Verdict:
    unknown = facts.deployment.unknown
    if unknown:
        text = f"This version of the operator ignores {', '.join(unknown)}."
        return Verdict(Reason.UNKNOWN_FIELDS, text)
    return Verdict(Reason.UNDERSTOOD, "All fields of the spec are known.")
