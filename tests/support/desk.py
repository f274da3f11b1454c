"""A machine with scripts that call programs of SAS Event Stream Processing."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from support import groups


class Desk:
    """A machine on which `dfesp_fs_adapter` is ours, and the scripts that were started there."""

    def __init__(self, folder: Path, model: Path, prefix: str) -> None:
        """Put the program into `folder`; adapters serve `model`, whose topics begin so."""
        self.folder = folder
        self._environment = {
            **os.environ,
            "DFESP_HOME": str(folder),
            "ESPHA_MODEL": str(model),
            "ESPHA_PREFIX": prefix,
            "PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(["engine", os.environ.get("PYTHONPATH", "")]),
        }
        self._started: list[subprocess.Popen[bytes]] = []
        (folder / "bin").mkdir()
        python = shlex.quote(sys.executable)
        self.install(
            "dfesp_fs_adapter", f'#!/bin/sh\nexec {python} -m espha.cli adapter run "$0" "$@"\n'
        )

    def install(self, program: str, text: str) -> None:
        """Put a program where scripts find it: in `$DFESP_HOME/bin`, and first on the path."""
        path = self.folder / "bin" / program
        path.write_text(text)
        path.chmod(0o755)

    def start(self, command: str) -> subprocess.Popen[bytes]:
        """Run a script with a command line of the adapter in it."""
        script = self.folder / f"start-{len(self._started)}.sh"
        script.write_text(
            f"#!/bin/sh\nBPATH=$DFESP_HOME/bin\n\n$BPATH/dfesp_fs_adapter {command}\n"
        )
        return self.run(["/bin/sh", str(script)])

    def run(self, words: list[str]) -> subprocess.Popen[bytes]:
        """Run a command in a group of processes of its own."""
        with self._log(len(self._started)).open("wb") as log:
            process = subprocess.Popen(
                words, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        self._started.append(process)
        return process

    def log(self, process: subprocess.Popen[bytes]) -> str:
        """Return what a command has written."""
        return self._log(self._started.index(process)).read_text(errors="replace")

    def _log(self, number: int) -> Path:
        return self.folder / f"run-{number}.log"

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        """Kill everything that a command has started."""
        groups.kill(process)

    def stop(self) -> None:
        """End all of them."""
        for process in self._started:
            if process.poll() is None:
                self.kill(process)
