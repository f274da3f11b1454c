"""A window of the model to the stages that run it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from espha.model.project import Field, Window
from espha.windows import (
    aggregate,
    calculate,
    compute,
    copy,
    counter,
    filter,
    functional,
    geofence,
    join,
    lua,
    notification,
    pattern,
    python,
    remove_state,
    source,
    transpose,
    union,
)
from espha.windows.index import index_of
from espha.windows.stage import Collapse, OnlyInserts, Stage

Feeds = Sequence[tuple[Field, ...]]
"""The schemas of the windows that feed a window, in the order of the edges."""

BUILDERS: Final[Mapping[str, Callable[[Any, Feeds], list[Stage]]]] = {
    "source": source.stages,
    "filter": filter.stages,
    "compute": compute.stages,
    "copy": copy.stages,
    "functional": functional.stages,
    "calculate": calculate.stages,
    "aggregate": aggregate.stages,
    "join": join.stages,
    "union": union.stages,
    "geofence": geofence.stages,
    "lua": lua.stages,
    "python": python.stages,
    "counter": counter.stages,
    "remove-state": remove_state.stages,
    "transpose": transpose.stages,
    "notification": notification.stages,
    "pattern": pattern.stages,
}
"""What makes the stages of each kind of window."""

OWN_ROWS: Final[frozenset[str]] = frozenset({"aggregate", "join", "notification"})
"""Kinds that keep their rows themselves, in another way than by an index over what leaves."""


def build_stages(window: Window, feeds: Feeds) -> list[Stage]:
    """Return the stages of a window, in the order of processing.

    Args:
        window: the window.
        feeds: schemas of the windows that feed it, in the order of the edges.
    """
    stages = BUILDERS[window.kind](window, feeds)
    if window.stateful and window.kind not in OWN_ROWS:
        stages.append(index_of(window))
    if window.collapse_updates:
        stages.append(Collapse())
    if window.insert_only_output:
        stages.append(OnlyInserts())
    return stages
