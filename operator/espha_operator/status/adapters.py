"""What the status says of each adapter, and which of its pods leads."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha_operator.api.status import AdapterStatus
from espha_operator.status.facts import Facts

# Digits at the end of a znode's name; who joined later has a higher number.
_NUMBER = 10


def adapters(facts: Facts, before: list[AdapterStatus] | None) -> list[AdapterStatus] | None:
    """Return a part of the status for each adapter that is wanted.

    What nobody tells now stays as it was: no pod of it is active, or none answers.
    """
    if facts.adapters is None:
        return before
    known = {one.name: one for one in before or ()}
    return [
        _adapter(one.label, _told(facts, one.label), known.get(one.label))
        for one in facts.deployment.spec.adapters.every
    ]


def _adapter(name: str, told: list[ReplicaStatus], before: AdapterStatus | None) -> AdapterStatus:
    active = leading(told)
    waiting = sorted(one.name for one in told if one.in_sync and one is not active)
    update = {
        "active": active.name if active else None,
        "standby": waiting or None,
        **_progress(active),
        **_error(told),
    }
    return (before or AdapterStatus(name=name)).model_copy(update=update)


def leading(told: Iterable[ReplicaStatus]) -> ReplicaStatus | None:
    """Return the pod that is active; where two say so for a moment, the one elected last.

    Who was active before learns of its successor when it publishes next.
    """
    claiming = [one for one in told if one.state is EngineState.ACTIVE]
    return max(claiming, key=lambda one: (one.znode or "")[-_NUMBER:], default=None)


def trouble(facts: Facts) -> list[str]:
    """Return a sentence for each adapter's pod that says what is wrong now."""
    return [f"{one.name}: {one.message}" for one in facts.adapters or () if one.message]


def roles(facts: Facts, labelled: Mapping[str, str | None]) -> dict[str, str]:
    """Pods of adapters whose role label must change, with the new value.

    The Service of adapters that listen leads to the pod that is active by this label. Where nobody
    says to be active, the label stays where it is, as with engines.

    Args:
        facts: what the adapters say.
        labelled: their pods with the value of the label `espha.dev/role`.
    """
    changed: dict[str, str] = {}
    for one in filter(lambda one: one.by_role, facts.deployment.spec.adapters.every):
        pods = _pods(facts, one.label, labelled)
        active = leading(_told(facts, one.label))
        for pod in pods:
            role = "active" if active and pod == active.name else "standby"
            if labelled[pod] is None or (active and labelled[pod] != role):
                changed[pod] = role
    return changed


def _told(facts: Facts, label: str) -> list[ReplicaStatus]:
    names = set(_pods(facts, label, (one.name for one in facts.adapters or ())))
    return [one for one in facts.adapters or () if one.name in names]


def _pods(facts: Facts, label: str, pods: Iterable[str]) -> list[str]:
    own = f"{facts.deployment.name}-{label}"
    return [pod for pod in pods if pod.rpartition("-")[0] == own]


def _progress(active: ReplicaStatus | None) -> dict[str, object]:
    progress = active.adapter if active else None
    if progress is None:
        return {}
    return {
        "rows": progress.rows,
        "rejected": progress.rejected,
        "position": progress.position or None,
        "lag": progress.lag,
        "lag_unit": progress.lag_unit or None,
    }


def _error(told: Iterable[ReplicaStatus]) -> dict[str, object]:
    found = [(one.last_error_at, one.last_error) for one in told if one.last_error_at is not None]
    if not found:
        return {}
    moment, text = max(found)
    stamp = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"last_error": text, "last_error_time": stamp}
