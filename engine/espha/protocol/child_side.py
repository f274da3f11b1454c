"""The child's side of the talk with its supervisor: roles come in, states go out."""

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable

from espha.protocol.activity import Doing
from espha.protocol.control import STATUS_FD_VARIABLE, Instruction
from espha.protocol.deaths import Deaths
from espha.protocol.lifeline import Lifeline
from espha.protocol.model_change import ModelRequest
from espha.protocol.states import EndReason, EngineState, ExitCode, Role
from espha.protocol.status import ChildStatus, DivergenceFacts, EngineProgress, Progress

_HEARTBEAT_S = 0.1
_ASLEEP_S = 2.0
"""A heartbeat that comes later than this means that the whole process was frozen."""
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Control:
    """Reads instructions from standard input, reports the status on the status descriptor.

    Without a status descriptor (a child started by hand) it reports nothing and is active at once.
    """

    def __init__(self, lifeline: tuple[str, int] | None = None) -> None:
        """Begin as a standby, where there is a supervisor; accept connections at `lifeline`."""
        self._active = threading.Event()
        self.heir = ""
        """With the role `standby`: whom the order log is to name as the one that goes on."""
        self.proof_wanted = threading.Event()
        """Set when it is in doubt whether this one still leads; whoever commits clears it."""
        self.wake: Callable[[], None] = lambda: None
        """Called after each instruction, from another thread: the main loop need not look for it.
        """
        self.model_request: ModelRequest | None = None
        """What is to become of the next model; who does it sets it to None."""
        self.follow = threading.Event()
        """Set when the order log has left the model that this engine was given, in an earlier life.
        """
        self.shadow = False
        """Whether this one runs the next model, and writes its snapshots itself."""
        self.snapshot_wanted = threading.Event()
        """Set when somebody asks for a snapshot; who makes it clears it."""
        self.snapshots = False
        """Whether this replica is the one that writes them without being asked."""
        self.divergence: DivergenceFacts | None = None
        """What an engine remembers of having diverged; goes with each report."""
        self.deaths: Deaths | None = None
        """What is known of engines that have died in the middle of a batch."""
        self.doing = Doing()
        """What the main loop does; goes with each report and each heartbeat."""
        self._elected_at = self._beat = time.monotonic()
        self._woke_at = 0.0
        self._lock = threading.Lock()
        self._status: ChildStatus | None = None
        self._lifeline: Lifeline | None = None
        fd = os.environ.get(STATUS_FD_VARIABLE)
        self._fd = int(fd) if fd else None
        if self._fd is None:
            self._active.set()
            self.snapshots = True
            return
        os.set_blocking(self._fd, False)
        die_with_parent()
        self._lifeline = Lifeline(*lifeline) if lifeline else None
        threading.Thread(target=self._read_instructions, name="control", daemon=True).start()
        threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True).start()

    @property
    def role(self) -> Role:
        """`active` while this replica is elected, else `standby`."""
        return Role.ACTIVE if self._active.is_set() else Role.STANDBY

    @property
    def overslept(self) -> bool:
        """Whether this process was frozen since it was elected: who waits for it, waits no longer.

        Always False without a supervisor, which alone tells who is elected.
        """
        now = time.monotonic()
        asleep = self._fd is not None and now - self._beat > _ASLEEP_S
        return asleep or self._woke_at > self._elected_at

    def wait_active(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds to be elected; tell whether that is so."""
        return self._active.wait(timeout)

    def lead(self) -> None:
        """Be active from now on: the order log says so, before the supervisor does."""
        self._elected_at = time.monotonic()
        self._active.set()

    def report(
        self,
        state: EngineState,
        in_sync: bool,
        progress: Progress | None = None,
        *,
        message: str = "",
        reason: EndReason | None = None,
    ) -> None:
        """Tell the supervisor the status: at once, or mere progress with the next heartbeat."""
        status = ChildStatus(
            state=state,
            lifeline=self._lifeline.port if self._lifeline else 0,
            in_sync=in_sync,
            message=message,
            reason=reason,
            divergence=self.divergence,
            progress=progress,
        )
        news = self._status is None or _urgent(status) != _urgent(self._status)
        self._status = status
        if news:
            self._send()

    def let_go(self) -> None:
        """Let those who hold on to this process know now that it ends."""
        if self._lifeline:
            self._lifeline.end()

    def _send(self) -> None:
        if self._fd is None or self._status is None:
            return
        with self._lock:  # what is said later is also newer
            now = {
                "activity": self.doing.told(),
                "unordered_ms": self.doing.unordered_ms(),
                "held": self.doing.held_topic(),
            }
            self._write(self._fd, self._status.model_copy(update=now).encode())

    @staticmethod
    def _write(fd: int, line: bytes) -> None:
        try:
            os.write(fd, line)
        except BlockingIOError:
            pass  # the supervisor is behind; the next heartbeat says it again
        except BrokenPipeError:
            os._exit(ExitCode.ORPHANED)

    def _heartbeat(self) -> None:
        pause = threading.Event()
        while not pause.wait(_HEARTBEAT_S):
            now = time.monotonic()
            if now - self._beat > _ASLEEP_S:
                self._woke_at = now
            self._beat = now
            self._send()

    def _read_instructions(self) -> None:
        # Unbuffered: a thread that waits in a buffered read crashes Python's own shutdown.
        for line in open(0, "rb", buffering=0, closefd=False):  # noqa: SIM115 - a number
            told = Instruction.model_validate_json(line)
            if told.role is Role.ACTIVE:
                self._elected_at = time.monotonic()
                self._active.set()
            if told.role is Role.STANDBY:
                self.heir = told.heir
                self._active.clear()
            if told.follow:
                self.follow.set()
            if told.model:
                self.model_request = told.model
            if told.deaths:
                self.deaths = told.deaths
            if told.snapshots is not None:
                self.snapshots = told.snapshots
            if told.snapshot:
                self.snapshot_wanted.set()
            if told.prove:
                self.proof_wanted.set()
            self.wake()
        # The supervisor is gone, and the znode with it: nobody may publish from here. A hard end
        # is safe at any moment, since only whole transactions count.
        os._exit(ExitCode.ORPHANED)


def _urgent(status: ChildStatus) -> tuple[object, ...]:
    """Return what others wait for: all but progress, and of that who has taken over."""
    progress = status.progress
    leads = (progress.epoch, progress.active) if isinstance(progress, EngineProgress) else None
    return status.state, status.in_sync, status.message, status.reason, status.divergence, leads
