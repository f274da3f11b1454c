"""Python runs this first in an engine whose kernel does not survive some events.

An event is poison when one of its values is a number of `chaos.poisoned`: a model would need a
mistake of the engine's own to do the same.
"""

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from chaos.poisoned import EATS, EXITS, HANGS, RAISES, SPINS

_MODULE = "espha.kernel.flow"


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


class _Finder(MetaPathFinder, Loader):
    """Finds one module, and changes it when it has been read."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        found = PathFinder.find_spec(name, path)
        if found is None or found.origin is None:
            return None
        self._found = found
        return importlib.util.spec_from_loader(name, self, origin=found.origin)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert self._found.loader is not None
        self._found.loader.exec_module(module)
        through = module.Flow.through

        def poisoned(flow: Any, path: str, steps: Any, units: Any) -> Any:
            for unit in units:
                for event in unit:
                    for value in event.values:
                        if value.__class__ is int and value in _WORK:
                            _WORK[value]()
            return through(flow, path, steps, units)

        module.Flow.through = poisoned


sys.meta_path.insert(0, _Finder())
