"""How a supervisor's child is started: as a command, or by a fork server that stays."""

import array
import contextlib
import os
import signal
import socket
import subprocess
import time
from typing import Protocol, TypeVar

import structlog
from pydantic import ValidationError

from espha.protocol.control import (
    FORK_SERVER_FD_VARIABLE,
    START,
    STATUS_FD_VARIABLE,
    Ended,
    Forked,
)
from espha.protocol.ends import wait_for_end

_FIRST_ANSWER_S = 300.0
"""A new fork server starts a JVM and imports half of Spark, on a machine that may do much else."""
_ANSWER_S = 10.0
_CODE_S = 1.0
_KILLED = -signal.SIGKILL
_LOG = structlog.get_logger()
_Said = TypeVar("_Said", Forked, Ended)


class Process(Protocol):
    """A child that was started."""

    def wait(self) -> None:
        """Wait for its end."""

    def code(self) -> int:
        """Return its exit code, negative for a signal; it has ended, and takes some time."""

    def kill(self) -> None:
        """End it, and what it has started, at once."""


class Spawner(Protocol):
    """What starts a supervisor's child, one at a time."""

    @property
    def pid(self) -> int | None:
        """The process of ours that is to be waited for; None: none yet."""

    def start(self, stdin: int, status: int) -> Process:
        """Start the child with these descriptors; they can be closed here then."""

    def distrust(self) -> None:
        """Use nothing again that the last child used."""

    def stop(self) -> None:
        """End everything."""


class CommandSpawner:
    """Runs a command for each life."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: _Group | None = None

    @property
    def pid(self) -> int | None:
        """See `Spawner`."""
        return self._process.pid if self._process else None

    def start(self, stdin: int, status: int) -> Process:
        """See `Spawner`."""
        environment = {**os.environ, STATUS_FD_VARIABLE: str(status)}
        self._process = _Group(self._command, environment, status, stdin)
        return self._process

    def distrust(self) -> None:
        """See `Spawner`; each life has everything of its own."""

    def stop(self) -> None:
        """See `Spawner`."""
        if self._process:
            self._process.kill()


class ForkServerSpawner:
    """Keeps a fork server running, and has it fork each life's process."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._running: tuple[_Group, socket.socket] | None = None

    @property
    def pid(self) -> int | None:
        """See `Spawner`."""
        return self._running[0].pid if self._running else None

    def start(self, stdin: int, status: int) -> Process:
        """See `Spawner`."""
        limit = _ANSWER_S
        if self._running is None or self._running[0].has_ended():
            self.stop()
            self._running, limit = self._begin(), _FIRST_ANSWER_S
        process, talk = self._running
        descriptors = array.array("i", [stdin, status])
        with contextlib.suppress(OSError):  # it has just ended: so will this life
            talk.sendmsg([START], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        return _Forked(process, talk, limit)

    def _begin(self) -> "tuple[_Group, socket.socket]":
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            environment = {**os.environ, FORK_SERVER_FD_VARIABLE: str(theirs.fileno())}
            return _Group(self._command, environment, theirs.fileno()), ours

    def distrust(self) -> None:
        """See `Spawner`."""
        self.stop()

    def stop(self) -> None:
        """See `Spawner`."""
        if self._running:
            process, talk = self._running
            self._running = None
            process.end()
            talk.close()


class _Group:
    """A process that leads a group of its own, with all that it starts."""

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        descriptor: int,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=stdin,
            pass_fds=(descriptor,),
            env=environment,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> None:
        self._process.wait()

    def code(self) -> int:
        return self._process.wait()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> None:
        self.kill()
        self.wait()


class _Forked:
    """A process that a fork server has forked, or is about to."""

    def __init__(self, fork_server: _Group, talk: socket.socket, limit: float) -> None:
        self._fork_server, self._talk, self._limit = fork_server, talk, limit
        self._pid: int | None = None
        self._ended = False

    def wait(self) -> None:
        """See `Process`; a fork server that does not answer in time is killed: it has ended."""
        try:
            self._pid = self._hear(Forked, self._limit).pid
        except TimeoutError:
            _LOG.error(f"the fork server does not answer within {self._limit:.0f} s; it is killed")
        except OSError:  # it has ended
            pass
        if self._pid is None:
            self._fork_server.end()
            return
        with contextlib.suppress(ProcessLookupError):  # it has ended, and was collected
            wait_for_end(self._pid)
        self._ended = True

    def code(self) -> int:
        """See `Process`."""
        if self._pid is None:
            return _KILLED
        try:
            return self._hear(Ended, _CODE_S).code
        except OSError:  # the fork server has ended with it, or is frozen
            return _KILLED

    def _hear(self, wanted: type[_Said], limit: float) -> _Said:
        """Return what the fork server says, passing over what it has said too late.

        Raises:
            OSError: it says nothing in time, or has ended.
        """
        until = time.monotonic() + limit
        while True:
            self._talk.settimeout(max(until - time.monotonic(), 0.001))
            said = self._talk.recv(4096)
            if not said:
                raise ConnectionResetError
            with contextlib.suppress(ValidationError):
                return wanted.model_validate_json(said)

    def kill(self) -> None:
        """See `Process`."""
        if self._pid is None:
            self._fork_server.kill()
        elif not self._ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
