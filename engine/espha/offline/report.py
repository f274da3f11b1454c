"""What a run tells its user, on stderr: progress, bad records, and a table at the end."""

import sys
from collections import Counter
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from espha.model import Project
from espha.offline.arrivals import Arrival
from espha.offline.runner import Runner, Tally

SHOWN = 10
"""Refusals that are told in full; the others are counted."""
SUMMED_UP = 3
"""Refusals that are told again in the end, below the table."""


class Report:
    """Tells about one run; use it in a `with` statement around the run."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._refusals = 0
        self._first: list[str] = []
        self._progress = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[count]:,} events in, {task.fields[left]:,} out"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            # Rows for standard output stay there when it is not this terminal.
            redirect_stdout=sys.stdout.isatty(),
        )
        self._task = self._progress.add_task("run", total=None, count=0, left=0)

    def __enter__(self) -> "Report":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def say(self, sentence: str) -> None:
        """Print one line."""
        self._console.print(escape(sentence), soft_wrap=True, highlight=False)

    def refusal(self, arrival: Arrival | None, window: str, reason: str) -> None:
        """Print one refusal, with its file and line, unless there were many."""
        self._refusals += 1
        if self._refusals > SHOWN:
            return
        where = "by the clock"
        if arrival is not None:
            where = f"{arrival.origin}:{arrival.line}" if arrival.line else arrival.origin
        at = f" (at {window})" if window else ""
        sentence = f"{where}: {reason}{at}"
        self.say(sentence)
        if len(self._first) < SUMMED_UP:
            self._first.append(sentence)

    def progress(self, tally: Tally) -> None:
        """Show how far the run is."""
        self._progress.update(
            self._task,
            count=tally.read.total(),
            left=tally.left.total(),
            total=None if tally.done is None else 1.0,
            completed=tally.done or 0.0,
        )

    def end(self, project: Project, runner: Runner, engine: str) -> None:
        """Print what was not done, and the table; `engine` says what ran the model."""
        tally = runner.tally
        if self._refusals > SHOWN:
            self.say(f"… and {self._refusals - SHOWN:,} more refusals")
        for sentence in [*tally.notes, *tally.troubles]:
            self.say(sentence)
        self._console.print(_table(project, runner))
        word = "connector" if tally.left_out == 1 else "connectors"
        left_out = f", {tally.left_out} {word} left out" if tally.left_out else ""
        counts = f"{tally.read.total():,} events in, {tally.bad:,} bad{left_out}"
        self.say(f"{counts}; run by {engine}")
        if self._refusals > SUMMED_UP:
            self.say("the first refusals:")
            for sentence in self._first:
                self.say(f"  {sentence}")


def _table(project: Project, runner: Runner) -> Table:
    tally = runner.tally
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("window", "type"):
        table.add_column(name, overflow="fold")
    for name in ("in", "out", "refused"):
        table.add_column(name, justify="right")
    table.add_column("written to", overflow="fold")
    entered: Counter[str] = Counter()
    for (_, source), count in tally.read.items():
        entered[source] += count
    for path, window in project.windows.items():
        files = [f"{sink.goal} ({sink.written:,})" for sink in runner.sinks if sink.window == path]
        table.add_row(
            escape(path),
            window.type,
            f"{entered[path]:,}" if window.type == "source" else "",
            f"{tally.left[path]:,}" if path in runner.engine.shown else "",
            f"{tally.refused[path]:,}" if tally.refused[path] else "",
            escape(", ".join(files)),
        )
    return table
