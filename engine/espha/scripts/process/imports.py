"""The modules that a script can import, and which of them a text imports."""

import ast
from collections.abc import Iterator
from typing import Final

PURE: Final = frozenset(
    {"__future__", "abc", "array", "base64", "binascii", "bisect", "calendar", "cmath",
     "collections", "collections.abc", "colorsys", "contextlib", "copy", "csv", "dataclasses",
     "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "hmac", "html",
     "ipaddress", "itertools", "json", "math", "numbers", "operator", "pprint", "re", "statistics",
     "string", "struct", "textwrap", "traceback", "types", "typing", "unicodedata", "urllib.parse",
     "warnings", "xml.etree.ElementTree", "zlib"}
)  # fmt: skip
"""Modules of the standard library that a script gets as they are."""

GIVEN: Final = frozenset(
    {"ast", "datetime", "esp", "inspect", "io", "logging", "os", "os.path", "random", "sys",
     "threading", "time", "uuid"}
)  # fmt: skip
"""Modules of which a script gets what depends on the events alone; see `world`."""

PACKAGES: Final = ("numpy", "scipy", "pandas")
"""Packages that a script can use where they are installed."""

WITH_PACKAGE: Final = {
    "numpy": ("numpy.fft", "numpy.linalg", "numpy.ma", "numpy.polynomial", "numpy.random")
}
"""Parts that a package imports when a script first uses them, which would be too late."""

_FAILURES: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def known(name: str) -> bool:
    """Say whether scripts can import a module."""
    return name in PURE or name in GIVEN or name.partition(".")[0] in PACKAGES


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names of the modules that a script imports, and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            below = [part for alias in node.names if known(part := f"{name}.{alias.name}")]
            if known(name) or not below:
                yield name, node.lineno
            for part in below:
                yield part, node.lineno


def guarded(tree: ast.AST) -> set[int]:
    """Return the lines of imports whose failure the script expects."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(map(_catches, node.handlers)):
            for part in node.body:
                lines.update(line for _, line in imported(part))
    return lines


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(part, ast.Name) and part.id in _FAILURES for part in parts)


def unknown(tree: ast.AST, modules: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Yield the imports that would fail: neither known nor a module of the model."""
    expected = guarded(tree)
    for name, line in imported(tree):
        if not known(name) and name.partition(".")[0] not in modules and line not in expected:
            yield name, line
