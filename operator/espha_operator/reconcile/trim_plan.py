"""Which records of the logs nobody needs any more. Pure.

The state of an engine is a snapshot and the log after it. So what lies before the oldest snapshot
that is needed can go:

1. Two engines (one, where there is only one) must have a snapshot of the present model, on volumes
   of their own. Of the one with the newest snapshot all count, of the second one the newest. An
   engine whose snapshots are older, or that has none, takes one of these.
2. Where the second one's is old or missing, it is asked for one; where nothing comes of that for
   long (its volume may be broken), another one is.
3. No engine that answers may be behind: one that is not in sync holds up everything, because it
   reads what would be deleted; but not for ever, as one that never comes back would fill the disks,
   and only for minutes where they are nearly full.
4. The newest snapshot of an earlier model counts for a day: a roll-back goes on from there. Such a
   model may read other topics. It needs the order log all the same, and its own inputs stay whole.
5. What is not of these topics, as Kafka knows them by their ids, counts for nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from espha.protocol.snapshots import KeptSnapshot
from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus

COPIES = 2
# How long (ms) a roll-back to an earlier model can go on from its snapshot.
ROLL_BACK_MS = 24 * 3600 * 1000
# How long (s) an engine that is not in sync is waited for.
PATIENCE_S = 3600.0
SCARCE_PATIENCE_S = 120.0
# So many times as old as one that is asked for again is a snapshot of which nothing comes.
IN_VAIN = 3
# After so many intervals the second engine's snapshot is old, and at least so many ms; the first is
# for a standby, the second for the active engine, whose output pauses for it.
OLD_INTERVALS = 3, 10
OLD_MS = 180_000, 600_000


@dataclass(frozen=True)
class View:
    """What is known of a deployment's snapshots.

    Attributes:
        engines: that answer.
        kept: by name, the snapshots on their volumes, the newest first.
        wanted: number of engines in the spec.
        order_log: the topic.
        ids: Kafka's id of the order log and of each input topic.
        now_ms: milliseconds since 1970.
        interval_s: seconds between two snapshots.
        behind_s: for how long an engine has not been in sync.
        scarce: disks are so full that earlier models are given up.
    """

    engines: Sequence[ReplicaStatus]
    kept: Mapping[str, Sequence[KeptSnapshot]]
    wanted: int
    order_log: str
    ids: Mapping[str, str]
    now_ms: int
    interval_s: int = 60
    behind_s: float = 0.0
    scarce: bool = False


@dataclass(frozen=True)
class Trim:
    """What to do.

    Attributes:
        before: by topic, the offset of the first record that must stay.
        ask: engine that is to write a snapshot; empty: none.
        why: what holds the rest up, as a sentence; empty: nothing.
    """

    before: Mapping[str, int] = field(default_factory=dict)
    ask: str = ""
    why: str = ""


def decide(view: View) -> Trim:
    """Decide which records may go, and who has to write a snapshot for more to go."""
    active = next((one for one in view.engines if one.state is EngineState.ACTIVE), None)
    if active is None or active.engine is None:
        return Trim(why="No engine is active.")
    behind = sorted(one.name for one in view.engines if not one.in_sync)
    patience_s = SCARCE_PATIENCE_S if view.scarce else PATIENCE_S
    if behind and view.behind_s < patience_s:
        return Trim(why=f"Waits for {', '.join(behind)}, not in sync yet.")
    model = active.engine.model_digest
    fitting = {name: _fitting(view, kept, model) for name, kept in view.kept.items()}
    holders = sorted((name for name in fitting if fitting[name]), key=_newest(fitting))
    copies = min(COPIES, view.wanted)
    ask = _to_ask(view, fitting, holders[:copies], active.name)
    if len(holders) < copies:
        text = f"{len(holders)} of {copies} engines have a snapshot of the present model."
        return Trim(ask=ask, why=text)
    needed = [*fitting[holders[0]], *(fitting[name][0] for name in holders[1:copies])]
    reached = min(one.engine.sequence for one in view.engines if one.in_sync and one.engine)
    if min(one.sequence for one in needed) > reached:
        return Trim(ask=ask, why="An engine is still behind the newest snapshots.")
    return Trim(_before(view, needed, _earlier(view, model)), ask)


def _fitting(view: View, kept: Sequence[KeptSnapshot], model: str) -> list[KeptSnapshot]:
    return [one for one in kept if one.model == model and _is_of(view, one)]


def _is_of(view: View, one: KeptSnapshot) -> bool:
    return all(view.ids.get(topic) == known for topic, known in one.topics.items())


def _newest(
    fitting: Mapping[str, list[KeptSnapshot]],
) -> Callable[[str], tuple[int, str]]:
    return lambda name: (-fitting[name][0].sequence, name)


def _earlier(view: View, model: str) -> list[KeptSnapshot]:
    """Return snapshots of earlier models that somebody may go back to."""
    if view.scarce:
        return []
    return [
        one
        for one in chain.from_iterable(view.kept.values())
        if one.model != model and _goes_on(view, one) and view.now_ms - one.made < ROLL_BACK_MS
    ]


def _goes_on(view: View, one: KeptSnapshot) -> bool:
    """Tell whether an earlier model goes on from a snapshot, as far as its topics are known."""
    known = all(view.ids.get(topic, then) == then for topic, then in one.topics.items())
    return known and view.order_log in one.topics


def _to_ask(
    view: View,
    fitting: Mapping[str, list[KeptSnapshot]],
    holders: Sequence[str],
    active: str,
) -> str:
    """Return the engine whose snapshot would be the missing or the old copy; empty: none.

    The active one only where there is no other: it costs a pause of output.
    """
    last = None
    if len(holders) == min(COPIES, view.wanted):
        last, holders = fitting[holders[-1]][0], holders[:-1]
    others = [one.name for one in view.engines if one.in_sync and one.name not in holders]
    order = sorted(others, key=lambda name: (name == active, name))
    asked = order[0] if order else ""
    intervals, least = OLD_INTERVALS[asked == active], OLD_MS[asked == active]
    old = max(least, view.interval_s * intervals * 1000)
    age = old if last is None else view.now_ms - last.made
    if age >= IN_VAIN * old and len(order) > 1:
        return order[1]
    return asked if age >= old else ""


def _before(
    view: View, needed: Sequence[KeptSnapshot], earlier: Sequence[KeptSnapshot]
) -> dict[str, int]:
    before = {view.order_log: min(one.order_log for one in (*needed, *earlier))}
    for topic in set(view.ids).intersection(*(one.inputs for one in needed)):
        readers = [*needed, *(one for one in earlier if topic in one.topics)]
        if all(topic in one.inputs for one in readers):
            before[topic] = min(one.inputs[topic] for one in readers)
    return before
