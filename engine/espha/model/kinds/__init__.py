"""One module a window type: its XML to its part of the project.

Each module has a `KIND` that says which elements and attributes the type knows, and a function
that reads one window when those that feed it are known.
"""

from collections.abc import Mapping
from typing import Final

from espha.model.kinds import (
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
from espha.model.kinds.base import Kind

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        source.KIND,
        filter.KIND,
        compute.KIND,
        copy.KIND,
        functional.KIND,
        calculate.KIND,
        aggregate.KIND,
        join.KIND,
        union.KIND,
        geofence.KIND,
        lua.KIND,
        python.KIND,
        counter.KIND,
        remove_state.KIND,
        transpose.KIND,
        notification.KIND,
        pattern.KIND,
    )
}
"""By the word after `window-` in the XML."""
