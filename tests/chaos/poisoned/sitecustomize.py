"""Python runs this first in an engine whose kernel does not survive some events.

An event is poison when one of its values is a number of `chaos.poisoned`: a model would need a
mistake of the engine's own to do the same.
"""

import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from chaos.changed_module import ChangedModule
from chaos.poisoned import EATS, EXITS, HANGS, RAISES, SPINS


def _raise() -> None:
    raise RuntimeError("this record is poison")


def _hang() -> None:
    while True:
        time.sleep(60)


def _spin() -> None:
    while True:
        pass


def _eat() -> None:
    """Take memory until the kernel of the system ends the greediest process: this one."""
    held = [bytearray(1 << 20) for _ in range(256)]
    os.kill(os.getpid(), 9)
    del held


_WORK: dict[Any, Callable[[], None]] = {
    RAISES: _raise,
    HANGS: _hang,
    EATS: _eat,
    EXITS: lambda: os._exit(7),
    SPINS: _spin,
}


def _poison(module: ModuleType) -> None:
    through = module.Flow.through

    def poisoned(flow: Any, path: str, steps: Any, units: Any) -> Any:
        for unit in units:
            for event in unit:
                for value in event.values:
                    if value.__class__ is int and value in _WORK:
                        _WORK[value]()
        return through(flow, path, steps, units)

    module.Flow.through = poisoned


sys.meta_path.insert(0, ChangedModule("espha.kernel.flow", _poison))
