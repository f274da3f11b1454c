"""A module of a process that is another one there, from its first import on."""

import importlib.util
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class ChangedModule(MetaPathFinder, Loader):
    """Finds one module, and changes it when it has been read; for `sys.meta_path`."""

    def __init__(self, name: str, change: Callable[[ModuleType], None]) -> None:
        """Change the module with this name."""
        self._name, self._change = name, change

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find that module only."""
        if name != self._name:
            return None
        found = PathFinder.find_spec(name, path)
        if found is None or found.origin is None:
            return None
        self._found = found
        return importlib.util.spec_from_loader(name, self, origin=found.origin)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave that to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Read the module, and change it."""
        assert self._found.loader is not None
        self._found.loader.exec_module(module)
        self._change(module)
