"""A supervised child process: started, told its role, listened to, and waited for."""

import contextlib
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack

from pydantic import ValidationError

from espha.ha.spawner import Spawner
from espha.protocol.control import Instruction
from espha.protocol.deaths import Deaths
from espha.protocol.model_change import ModelRequest
from espha.protocol.states import Role
from espha.protocol.status import ChildStatus


class Child:
    """Has `spawner` start a child; calls `on_status` for each status line, `on_end` at its end.

    `on_exit` is called with its exit code, which may take a while longer. All are called from
    threads of this object. Make it in the main thread: what it starts asks the kernel to be killed
    when the thread that started it ends.
    """

    def __init__(
        self,
        spawner: Spawner,
        on_status: Callable[[ChildStatus], None],
        on_end: Callable[[], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self._telling = threading.Lock()
        # What is open of a child that could not begin is closed: the next life tries again.
        with ExitStack() as kept, ExitStack() as unread, ExitStack() as given:
            stdin, told = os.pipe()
            given.callback(os.close, stdin)
            self._stdin = kept.enter_context(os.fdopen(told, "wb", buffering=0))
            status, reported = os.pipe()
            given.callback(os.close, reported)
            unread.callback(os.close, status)
            self._process = spawner.start(stdin, reported)
            kept.callback(self.kill)
            threading.Thread(target=self._listen, args=(status, on_status), daemon=True).start()
            unread.pop_all()  # the thread closes it
            threading.Thread(target=self._wait, args=(on_end, on_exit), daemon=True).start()
            kept.pop_all()

    def make_active(self) -> None:
        """Tell the child that it is elected; a child that has just died is no error."""
        self._tell(Instruction(role=Role.ACTIVE))

    def make_standby(self, heir: str = "") -> None:
        """Tell the child to hand over, to `heir`: to finish, and to report `standby` then."""
        self._tell(Instruction(role=Role.STANDBY, heir=heir))

    def change_model(self, request: ModelRequest) -> None:
        """Tell the child what is to become of the next model."""
        self._tell(Instruction(model=request))

    def follow(self) -> None:
        """Tell the child, before it has chosen a model, to run that of the order log."""
        self._tell(Instruction(follow=True))

    def ask_proof(self) -> None:
        """Tell the child to commit something, by which it learns whether it still leads."""
        self._tell(Instruction(prove=True))

    def ask_snapshot(self) -> None:
        """Ask the child to write its state now; a child that has just died is no error."""
        self._tell(Instruction(snapshot=True))

    def tell_deaths(self, deaths: Deaths) -> None:
        """Tell the child of engines that died in the middle of a batch."""
        self._tell(Instruction(deaths=deaths))

    def choose(self, chosen: bool) -> None:
        """Have the child write snapshots without being asked, or no more."""
        self._tell(Instruction(snapshots=chosen))

    def _tell(self, what: Instruction) -> None:
        with contextlib.suppress(BrokenPipeError, ValueError), self._telling:
            self._stdin.write(what.encode())

    def kill(self) -> None:
        """End the child at once; safe at any moment by the protocol."""
        self._process.kill()

    def _listen(self, read_end: int, on_status: Callable[[ChildStatus], None]) -> None:
        with os.fdopen(read_end, "rb") as lines:
            for line in lines:
                try:
                    status = ChildStatus.model_validate_json(line)
                except ValidationError:  # cut off by a kill
                    continue
                on_status(status)

    def _wait(self, on_end: Callable[[], None], on_exit: Callable[[int], None]) -> None:
        self._process.wait()
        on_end()
        on_exit(self._process.code())
        self.kill()  # what the child left behind
        with self._telling:
            self._stdin.close()


def reap_orphans(child: int | None) -> None:
    """Collect ended processes that a container hands to process 1; never the child itself."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in (0, child):
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
