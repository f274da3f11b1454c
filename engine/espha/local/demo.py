"""`espha local demo`: real input, the active engine killed twice, and what came out.

1. A deployment of the sample model comes up, a checker watches its output, and a producer appends
   this machine's memory figures to a file, ten rows a second.
2. The active engine's whole pod is killed; when all is in sync again, the process of the next one.
3. The producer ends; when nothing moves any more, the checker compares all that went in with all
   that came out, and names the longest gap at each kill.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from espha.local.actions import bring_up, show_status
from espha.local.check import checks
from espha.local.end import What, down, kill
from espha.local.errors import LocalError
from espha.local.look import Look, look_at
from espha.local.outcome import complaint, table
from espha.local.processes import MARK
from espha.local.state import DATA, Folder, Spec
from espha.local.up import UpOptions
from espha.local.waiting import StallDetector

MODEL = Path(__file__).with_name("ha-project.xml")
SUM = "Record_Counter:20:sum20"
RATE = 10
_ENOUGH_ROWS = 100
_IDLE_S = 5
_STILL_S = 120.0
_LOOK_S = 0.3
_OWN = "demo"


def run(path: Path, *, keep: bool) -> int:
    """Run the demo from its beginning; what an earlier one left is removed.

    Args:
        path: its folder.
        keep: leave the deployment up.

    Returns:
        0; 1 when anything is lost, double, out of order or wrong.

    Raises:
        LocalError: it cannot run; the text says why.
    """
    began, console = time.monotonic(), Console()
    folder = Folder(path)
    _clear(folder)
    try:
        return _Demo(folder, console, began).run()
    finally:
        if folder.exists and not keep:
            down(folder, delete=False)


class _Demo:
    def __init__(self, folder: Folder, console: Console, began: float) -> None:
        self._folder, self._console, self._began = folder, console, began
        self._data = folder.path / DATA
        self._report = self._data / "report.json"
        self._spec: Spec

    def run(self) -> int:
        self._data.mkdir(parents=True)
        (self._data / _OWN).touch()
        bring_up(
            UpOptions(
                folder=self._folder.path,
                model=MODEL,
                inputs=[f"memory={self._data}/memory.csv,header,noopcode,noautogenfield"],
                outputs=[f"outbound={self._data}/result.csv,header=full"],
                sums=[SUM],
            )
        )
        self._spec = self._folder.spec()
        with self._started(self._checker()) as checker:
            with self._started(self._producer()):
                rows = f"{_ENOUGH_ROWS} rows of this machine's memory figures reach the result file"
                self._wait(rows, lambda look: look.rows_written() >= _ENOUGH_ROWS, checker)
                show_status(self._folder.path, watch=False)
                self._kill("pod of the active engine killed with SIGKILL", "supervisor", checker)
                self._kill("process of the active engine killed with SIGKILL", "engine", checker)
                show_status(self._folder.path, watch=False)
            self._say("the input ends; everything arrives, and the checker compares …")
            checker.wait()
        return self._conclude()

    def _kill(self, name: str, what: What, checker: subprocess.Popen[bytes]) -> None:
        """Kill the active engine in one way, and wait until another one leads and all are back."""
        before = look_at(self._folder, self._spec)
        active = before.active()[0]
        moment = kill(self._folder, active, what, note=False)
        self._folder.note_fault(name, moment)
        self._say(f"{name}: {active}")

        def recovered(look: Look) -> bool:
            return (
                look.ready
                and look.epoch() > before.epoch()
                and look.rows_written() > before.rows_written()
            )

        after = self._wait("another engine leads, and all are in sync again", recovered, checker)
        self._say(f"active: {after.active()[0]} (before: {active})")

    def _wait(
        self, what: str, condition: Callable[[Look], bool], checker: subprocess.Popen[bytes]
    ) -> Look:
        self._say(f"{what} …")
        look = Look()
        stalled = StallDetector(_STILL_S, lambda: look.states())  # noqa: PLW0108 - of the newest
        while not condition(look := look_at(self._folder, self._spec)):
            if checker.poll() is not None:
                raise LocalError(f"the checker has ended too early; its log is {self._log}")
            if stalled.over():
                raise LocalError(f"nothing has moved for {_STILL_S:.0f} s: {look.sentence()}")
            time.sleep(_LOOK_S)
        return look

    def _checker(self) -> list[str]:
        spec = checks(self._folder, ())
        return [
            "verify", "--json", "--follow", "--until-idle", str(_IDLE_S),
            "--bootstrap", spec.bootstrap, "--model", str(spec.model), "--prefix", spec.prefix,
            "--sum-window", SUM, "--faults", str(self._folder.faults),
            "--input-file", str(spec.source_file), "--output-file", str(spec.result_file),
        ]  # fmt: skip

    def _producer(self) -> list[str]:
        return ["sample", "memory", "--file", f"{self._data}/memory.csv", "--rate", str(RATE)]

    @property
    def _log(self) -> Path:
        return self._folder.logs / "demo.log"

    @contextmanager
    def _started(self, arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run an espha command beside this one; it ends with the block."""
        with self._report.open("ab") as report, self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "espha.cli", *arguments],
                env={**os.environ, MARK: self._spec.id},
                stdin=subprocess.DEVNULL, stdout=report, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait()

    def _conclude(self) -> int:
        lines = self._report.read_text().splitlines()
        found = next((line for line in reversed(lines) if line.startswith("{")), None)
        if found is None:
            raise LocalError(f"the checker ended without a report; its log is {self._log}")
        report: dict[str, Any] = json.loads(found)
        self._console.print(table(report))
        took = time.monotonic() - self._began
        self._say(f"without faults a row comes every {1000 // RATE} ms; the demo took {took:.0f} s")
        bad = complaint(report)
        if bad:
            self._console.print(bad, markup=False, highlight=False)
        return 1 if bad else 0

    def _say(self, text: str) -> None:
        passed = time.monotonic() - self._began
        self._console.print(f"[{passed:6.1f} s] {text}", markup=False, highlight=False)


def _clear(folder: Folder) -> None:
    """Remove what an earlier demo left.

    Raises:
        LocalError: the folder holds something else.
    """
    if not folder.path.exists() or not any(folder.path.iterdir()):
        return
    if not (folder.path / DATA / _OWN).exists():
        raise LocalError(f"{folder.path} is not of an earlier demo; name another --folder")
    if folder.exists:
        down(folder, delete=True)
    else:
        (folder.path / DATA / _OWN).unlink()
        (folder.path / DATA).rmdir()
