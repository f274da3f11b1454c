"""Supervised processes, as they run in pods."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from espha.local.ports import HOST, free_ports
from espha.local.processes import children, name_of
from espha.protocol.control import PROCESS_NAME

_FORK_SERVER = b"espha.engine.fork_server"


class Replica:
    """One `espha supervise -- …` process: an engine or an adapter, as it runs in a pod."""

    def __init__(
        self,
        name: str,
        folder: Path,
        arguments: list[str],
        environment: dict[str, str],
        port: int = 0,
    ) -> None:
        """Say what is to be started.

        Args:
            name: what it is called in the election.
            folder: where it works, and where its log goes.
            arguments: behind `espha supervise`.
            environment: variables on top of this process's own.
            port: where its supervisor answers; 0 for a free one.
        """
        self.name, self.folder = name, folder
        self.log = folder / f"{name}.log"
        self.port = port or free_ports(1)[0]
        self._command = [sys.executable, "-m", "espha.cli", "supervise", *arguments]
        self.environment = {
            **os.environ,
            "ESPHA_NAME": name,
            "ESPHA_HTTP_HOST": HOST,
            "ESPHA_HTTP_PORT": str(self.port),
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the supervisor; does not wait for its child."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # a share of the processor of its own, as a pod has it
            )

    def started(self) -> int:
        """Return the process id of what the supervisor has started: a fork server, or the child.

        Raises:
            LookupError: there is nothing now.
        """
        return started_by(self.process.pid if self.process else 0)

    def child(self) -> int:
        """Return the process id of the supervisor's child; for an engine, its fork server's.

        Raises:
            LookupError: there is none now.
        """
        return child_of(self.process.pid if self.process else 0)

    def jvm(self) -> int:
        """Return the process id of an engine's JVM.

        Raises:
            LookupError: there is none now.
        """
        return jvm_of(self.process.pid if self.process else 0)

    def worker(self) -> int:
        """Return the process id of Spark's worker, below an engine's JVM.

        Raises:
            LookupError: there is none now.
        """
        return worker_of(self.process.pid if self.process else 0)

    def kill_child(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the child."""
        os.kill(self.child(), number)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the supervisor."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def stop(self) -> None:
        """Kill the supervisor (its child follows) and wait for its end."""
        with contextlib.suppress(LookupError, ProcessLookupError):
            self.kill_child(signal.SIGCONT)
        self.kill(signal.SIGCONT)
        self.kill()
        if self.process is not None:
            self.process.wait()


def started_by(supervisor: int) -> int:
    """Return the process id of what a supervisor has started: a fork server, or its child.

    Raises:
        LookupError: there is nothing now.
    """
    found = children(supervisor) if supervisor else []
    if not found:
        raise LookupError(f"supervisor {supervisor} has no child")
    return found[0]


def child_of(supervisor: int) -> int:
    """Return the process id of a supervisor's child; for an engine, its fork server's.

    Raises:
        LookupError: there is none now.
    """
    started = started_by(supervisor)
    with contextlib.suppress(OSError):
        if _FORK_SERVER not in Path(f"/proc/{started}/cmdline").read_bytes():
            return started
    return _named(started, PROCESS_NAME)


def jvm_of(supervisor: int) -> int:
    """Return the process id of an engine's JVM.

    Raises:
        LookupError: there is none now.
    """
    return _named(started_by(supervisor), "java")


def worker_of(supervisor: int) -> int:
    """Return the process id of Spark's worker, which holds an engine's state.

    Raises:
        LookupError: there is none now.
    """
    daemons = [pid for pid in children(jvm_of(supervisor)) if name_of(pid).startswith("python")]
    found = [worker for daemon in daemons for worker in children(daemon)]
    if not found:
        raise LookupError(f"supervisor {supervisor} has no worker")
    return found[-1]


def _named(parent: int, name: str) -> int:
    for pid in children(parent):
        if name_of(pid) == name:
            return pid
    raise LookupError(f"process {parent} has no child {name}")
