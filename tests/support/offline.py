"""Runs of models on files, with a clock that tests turn."""

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from espha.offline.command import RunOptions, run

MODELS = Path(__file__).parents[1] / "unit/offline/models"


class FakeClock:
    """Time passes when somebody waits, and no other way."""

    def __init__(self, now: int = 1_000_000, on_wait: Callable[[int], None] | None = None) -> None:
        self.time = now
        self._on_wait = on_wait

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return self.time

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        assert milliseconds > 0
        self.time += milliseconds
        if self._on_wait is not None:
            self._on_wait(self.time)


class Place:
    """A folder with a model and its files."""

    def __init__(self, folder: Path, model: str = "") -> None:
        self.folder = folder
        self.model = folder / "model.xml"
        if model:
            shutil.copy(MODELS / model, self.model)
        self.said = ""

    def write(self, name: str, *lines: str) -> Path:
        """Write lines to a file."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file."""
        return (self.folder / name).read_text(encoding="utf-8").splitlines()

    def run(self, *, clock: FakeClock | None = None, **options: Any) -> int:
        """Run the model; what it says is in `said`."""
        console = Console(width=200, force_terminal=False, record=True, file=io.StringIO())
        options = {"model": self.model, **options}
        code = run(RunOptions(**options), console, clock or FakeClock())
        self.said = console.export_text()
        return code
