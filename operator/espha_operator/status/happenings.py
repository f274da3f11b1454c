"""What has happened between two looks at a deployment, for people. Pure."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from espha.protocol.status import ReplicaStatus
from espha_operator.api.status import Condition, Status
from espha_operator.status.facts import Facts
from espha_operator.status.reasons import Reason

# Conditions whose changes are told, with whether they are well when they are true. Those of single
# servers and pods are not among them: they come and go with each restart.
TOLD = {
    "ModelValid": True,
    "TopicsReady": True,
    "ModelRolledOut": True,
    "SnapshotsInReach": True,
    "VolumesFit": True,
    "StorageLow": False,
    "Available": True,
    "SpecUnderstood": True,
    "Stalled": False,
    "Paused": False,
}
# Those that go through several reasons until they hold; only one that stalls is a warning.
_STEPWISE = frozenset({"ModelRolledOut", "VolumesFit"})
# At the very beginning nothing of this holds yet.
_LATER = frozenset({"TopicsReady", "SnapshotsInReach", "Available"}) | _STEPWISE


_STALLING = frozenset(str(one) for one in Reason if one.stalls)
# A take-over that was asked for, and another one.
TAKE_OVERS = ("TakenOver", "FailedOver")


class Happening(NamedTuple):
    """Something that people should know of.

    Attributes:
        reason: one word.
        message: a sentence.
        good: whether it is as it should be; a warning otherwise.
    """

    reason: str
    message: str
    good: bool


def by_status(before: Status, after: Status) -> Iterator[Happening]:
    """Return what a new status says that the one before did not.

    The first status of a deployment is only its beginning: what is not there yet is no news.
    """
    told: set[tuple[str, str]] = set()
    for name, well in TOLD.items():
        then, now = before.condition(name), after.condition(name)
        if now is None:
            continue
        good = (now.status == "True") == well
        same = (then.status if then else _usual(well)) == now.status
        if same and (good or then is None or then.reason == now.reason):
            continue
        if not before.conditions and name in _LATER and not good:
            continue
        if good and name == "Stalled":  # the condition that did not hold has been told
            continue
        if (now.reason, now.message) not in told:
            told.add((now.reason, now.message))
            # What is well again is best known by the condition's own name.
            harmless = good or (name in _STEPWISE and now.reason not in _STALLING)
            yield Happening(name if good and well else now.reason, now.message, harmless)
    yield from _rollout(before.condition("Progressing"), after)


def by_engines(
    before: Status, facts: Facts, seen: Mapping[str, ReplicaStatus]
) -> Iterator[Happening]:
    """Return take-overs and divergences.

    Args:
        before: the status so far, which knows how often an engine has taken over.
        facts: what the engines say now.
        seen: what they said before, by name.
    """
    active = facts.active
    if active and before.failovers is not None and active.epoch - 1 > before.failovers:
        yield _take_over(active, before, facts, seen)
    for one in facts.engines:
        known = seen.get(one.name)
        if known and (one.diverged_total or 0) > (known.diverged_total or 0):
            yield Happening("Diverged", f"{one.name} is rebuilt: {one.diverged}.", False)


def _usual(well: bool) -> str:
    return "True" if well else "False"


def _rollout(then: Condition | None, after: Status) -> Iterator[Happening]:
    now = after.condition("Progressing")
    if now is None or (then and then.status == now.status):
        return
    generation = f"Generation {after.observed_generation}"
    if now.status == "True":
        yield Happening("RolloutStarted", f"{generation}: {now.message}", True)
    elif then and now.reason == "Complete":
        yield Happening("RolloutFinished", f"{generation} runs everywhere.", True)


def _take_over(
    active: ReplicaStatus, before: Status, facts: Facts, seen: Mapping[str, ReplicaStatus]
) -> Happening:
    own = active.engine
    old = (own.taken_from if own else "") or before.active or ""
    planned = bool(own and own.taken_as_planned)
    gap = own.takeover_gap_ms if own else None
    of = f" from {old}" if old and old != active.name else ""
    took = f"{active.name} has taken over{of} (epoch {active.epoch})"
    parts = [
        took,
        "as asked for" if planned else _why(old, facts, seen),
        "" if gap is None else f"{gap} ms between the last commit before and the first one after",
    ]
    message = "; ".join(filter(None, parts)) + "."
    return Happening(TAKE_OVERS[not planned], message, planned)


def _why(old: str, facts: Facts, seen: Mapping[str, ReplicaStatus]) -> str:
    """Return why an engine is not active any more, as far as it can be seen; empty: it cannot."""
    if not old:
        return ""
    now, known = next((one for one in facts.engines if one.name == old), None), seen.get(old)
    if now is None:
        return f"{old} does not answer"
    kills = [
        reason for reason, count in now.kills.items() if count > (known or now).kills.get(reason, 0)
    ]
    if kills:
        return f"{old} was killed by its supervisor: {kills[0].sentence.rstrip('.')}"
    if now.reason:
        return f"{old} has ended: {now.reason.sentence.rstrip('.')}"
    if now.restarts > (known or now).restarts or not now.in_sync:
        return f"the process of {old} has ended"
    return ""
