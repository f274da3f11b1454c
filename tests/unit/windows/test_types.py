"""A window type is a folder and a line in the list; what a folder holds and may do."""

import ast
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import espha.windows
from espha.windows.types import REFUSED_WINDOWS, WINDOWS
from support.every import example

ROOT = Path(espha.windows.__file__).parent
FOLDERS = sorted(
    path.parent.name for path in ROOT.glob("*/spec.py") if path.parent.name != "shared"
)
SOURCES = sorted(ROOT.rglob("*.py"))
IO = {
    *("asyncio", "concurrent", "ctypes", "multiprocessing", "select", "signal", "threading"),
    *("http", "io", "os", "pathlib", "shutil", "socket", "ssl", "subprocess", "tempfile"),
    *("confluent_kafka", "kazoo", "pyspark", "random", "time", "urllib.request", "urllib3", "uuid"),
}
"""Modules by which a window could reach anything but its events, or differ between engines."""


def test_every_folder_is_in_the_list() -> None:
    listed = [window_type.package.rpartition(".")[2] for window_type in WINDOWS.values()]
    assert sorted(listed) == FOLDERS


@pytest.mark.parametrize("name", WINDOWS)
def test_a_folder_has_its_name_its_documentation_and_an_example(name: str) -> None:
    window_type = WINDOWS[name]
    assert window_type.package == f"espha.windows.{name.replace('-', '_')}"
    assert files(window_type.package).joinpath("docs.md").is_file()
    assert {part.tag for part in example(name)} <= {"windows", "edges", "project"}


def test_what_is_refused_is_not_in_the_list() -> None:
    assert not set(REFUSED_WINDOWS) & set(WINDOWS)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_window_has_no_way_to_the_outside(path: Path) -> None:
    """Scripts run in espha.scripts, which has a process for those in Python."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not _imported(tree) & IO
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"open", "exec", "eval", "__import__", "print", "input"}


def _imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and ast.unparse(node) != "from io import BytesIO":
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found | {name.partition(".")[0] for name in found}


def _loaded(code: str) -> set[str]:
    """Return the modules of a fresh interpreter that has run `code`."""
    script = f"import sys\n{code}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["espha.reader", "espha.builder", "espha_operator.handlers"])
def test_whoever_reads_models_does_not_load_what_runs_them(module: str) -> None:
    loaded = _loaded(f"import {module}")
    assert "espha.windows.types" in loaded
    stages = {name for name in loaded if name.endswith(".stages")}
    engine = {"pyspark", "pyarrow", "pandas", "espha.kernel", "espha.kafka", "espha.engine"}
    numerics = {"numpy", "scipy", "PIL"}  # the operator's image has none of them
    assert not stages | loaded & (engine | numerics)
