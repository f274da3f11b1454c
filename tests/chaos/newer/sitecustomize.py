"""Python runs this first in an engine of an espha in which a mistake is mended (`chaos.newer`)."""

import sys
from types import ModuleType
from typing import Any

from chaos.changed_module import ChangedModule
from chaos.newer import MENDED, SEMANTICS


def _count_on(module: ModuleType) -> None:
    module.SEMANTICS = SEMANTICS  # type: ignore[attr-defined]


def _mend(module: ModuleType) -> None:
    through = module.Flow.through

    def mended(flow: Any, path: str, steps: Any, units: Any) -> Any:
        return through(flow, path, steps, [[_mended(event) for event in unit] for unit in units])

    module.Flow.through = mended


def _mended(event: Any) -> Any:
    if MENDED not in event.values:
        return event
    values = tuple(value + 1 if value == MENDED else value for value in event.values)
    return event._replace(values=values)


sys.meta_path.insert(0, ChangedModule("espha.kernel.semantics", _count_on))
sys.meta_path.insert(0, ChangedModule("espha.kernel.flow", _mend))
