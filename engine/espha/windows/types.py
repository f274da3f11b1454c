"""The window types: the one list of them.

A window type is a folder: `spec.py` reads its XML, `stages.py` runs it. A spec never imports
stages, so whoever only reads models (the operator, `espha check`) does not pull them in.
"""

from collections.abc import Mapping
from typing import Final

from espha.windows.aggregate import spec as aggregate
from espha.windows.calculate import spec as calculate
from espha.windows.compute import spec as compute
from espha.windows.copy import spec as copy
from espha.windows.counter import spec as counter
from espha.windows.filter import spec as filter
from espha.windows.functional import spec as functional
from espha.windows.geofence import spec as geofence
from espha.windows.join import spec as join
from espha.windows.lua import spec as lua
from espha.windows.notification import spec as notification
from espha.windows.pattern import spec as pattern
from espha.windows.python import spec as python
from espha.windows.remove_state import spec as remove_state
from espha.windows.shared.spec import WindowType
from espha.windows.source import spec as source
from espha.windows.transpose import spec as transpose
from espha.windows.union import spec as union

WINDOWS: Final[Mapping[str, WindowType]] = {
    spec.WINDOW.name: spec.WINDOW
    for spec in (
        source,
        filter,
        compute,
        copy,
        functional,
        calculate,
        aggregate,
        join,
        union,
        geofence,
        lua,
        python,
        counter,
        remove_state,
        transpose,
        notification,
        pattern,
    )
}
"""By the word after `window-` in the XML."""
