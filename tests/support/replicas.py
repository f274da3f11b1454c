"""Supervised processes of a test, watched through their HTTP status."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from espha.ha.spawner import PROCESS_NAME
from support.servers import free_ports, wait_until

LIMIT_S = 150.0
"""Longer than this nothing may take, however busy the machine is."""


class Replica:
    """One `espha supervise -- …` process: an engine or an adapter, as it runs in a pod."""

    def __init__(
        self, name: str, folder: Path, arguments: list[str], environment: dict[str, str]
    ) -> None:
        self.name, self.folder = name, folder
        self.port = free_ports(1)[0]
        self._command = [sys.executable, "-m", "espha.cli", "supervise", *arguments]
        self.environment = {
            **os.environ,
            "ESPHA_NAME": name,
            "ESPHA_HTTP_HOST": "127.0.0.1",
            "ESPHA_HTTP_PORT": str(self.port),
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the supervisor; does not wait for its child."""
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self.environment,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # a share of the processor of its own, as a pod has it
            )

    def status(self) -> dict[str, Any]:
        """Return what `/status` says; an empty dict when nobody answers."""
        try:
            url = f"http://127.0.0.1:{self.port}/status"
            with urllib.request.urlopen(url, timeout=2) as answer:
                return dict(json.load(answer))
        except OSError:
            return {}

    def ask_snapshot(self) -> int:
        """Ask for a snapshot; return the HTTP code of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.request("POST", "/snapshot")
        return connection.getresponse().status

    def is_in(self, *states: str) -> bool:
        """Tell whether the replica is in one of these states."""
        return self.status().get("state") in states

    def started(self) -> int:
        """Return the process id of what the supervisor has started: a fork server, or the child.

        Raises:
            LookupError: there is nothing now.
        """
        children = _children(self.process.pid if self.process else 0)
        if not children:
            raise LookupError(f"{self.name} has no child")
        return children[0]

    def child(self) -> int:
        """Return the process id of the supervisor's child; for an engine, its fork server's.

        Raises:
            LookupError: there is none now.
        """
        started = self.started()
        if b"espha.engine.fork_server" not in Path(f"/proc/{started}/cmdline").read_bytes():
            return started
        return self._forked(PROCESS_NAME)

    def jvm(self) -> int:
        """Return the process id of an engine's JVM.

        Raises:
            LookupError: there is none now.
        """
        return self._forked("java")

    def _forked(self, name: str) -> int:
        for pid in _children(self.started()):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                    return pid
        raise LookupError(f"{self.name} has no process {name}")

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


def restarted(*replicas: Replica) -> Callable[[], None]:
    """Return what waits, when their children are killed now, until these are started again.

    Until then a status may still be that of the child that is dead.
    """
    before = {replica.name: _restarts(replica) for replica in replicas}

    def again() -> bool:
        return all(_restarts(replica) > before[replica.name] for replica in replicas)

    return lambda: wait_until(again, LIMIT_S, f"{', '.join(before)} started again")


def _restarts(replica: Replica) -> int:
    return int(replica.status().get("restarts") or 0)


def _children(pid: int) -> list[int]:
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in listing.read_text().split()] if listing.exists() else []


def active_of(replicas: list[Replica]) -> list[Replica]:
    """Return the replicas that say they are active."""
    return [replica for replica in replicas if replica.is_in("active")]
