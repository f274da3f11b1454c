"""The fork server: starts an engine's process again in a second, because all that is slow stays.

Importing Spark's Python side and starting its JVM is nine tenths of what an engine's start costs in
processor time. The fork server does that once. It forks an engine process whenever the supervisor
asks; that one opens its session on the JVM that runs already. What an engine process that has died
left in the JVM is ended before anything else happens: its query, its worker, a fence under way.

An engine that starts leaves the processor to those that run: `espha.autogroup`.

The supervisor's requests, and the answers, go over a socket pair; see `espha.protocol.control`.

The fork server ends, and the JVM with it, when the supervisor or the JVM ends, when the JVM cannot
be cleared, when an engine process ends in a way for which the JVM may be to blame, and now and
then: a JVM never forgets all of what dead processes held in it.
"""

import array
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
import threading
import traceback
from typing import NoReturn

import structlog

from espha.autogroup import STARTING, stand_back
from espha.garbage import spare_the_living
from espha.jsonlog import configure
from espha.pipeline.session import Jvm, start_jvm
from espha.protocol.child_side import die_with_parent
from espha.protocol.control import (
    FORK_SERVER_FD_VARIABLE,
    PROCESS_NAME,
    START,
    STATUS_FD_VARIABLE,
    Ended,
    Forked,
)
from espha.protocol.settings import Settings, load_settings
from espha.protocol.states import ExitCode

_LIVES = 100
_CLEAR_S = 20
_PR_SET_NAME = 15
_LOG = structlog.get_logger()


class _ForkServer:
    def __init__(self, settings: Settings, talk: socket.socket) -> None:
        self._settings = settings
        self._talk = talk
        self._jvm = self._start()
        self._jvm_ends = os.pidfd_open(self._jvm.pid)

    def _start(self) -> Jvm:
        """Start the JVM, and import meanwhile what an engine process needs."""
        imports = threading.Thread(target=importlib.import_module, args=("espha.engine.main",))
        imports.start()
        settings = self._settings
        jvm = start_jvm(settings.spark_master, settings.jars, settings.jvm_heap_mib)
        imports.join()
        gc.collect()
        gc.freeze()  # what is here is shared with all that are forked, as long as nobody touches it
        return jvm

    def run(self) -> NoReturn:
        """Serve until something ends it."""
        for _ in range(_LIVES):
            self._wait_for(self._talk.fileno())
            stdin, status = self._request()
            stand_back(STARTING)
            pid = os.fork()
            if pid == 0:
                self._engine(stdin, status)
            os.close(stdin)
            os.close(status)
            self._say(Forked(pid=pid))
            ends = os.pidfd_open(pid)
            self._wait_for(ends)
            os.close(ends)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            self._say(Ended(code=code))
            if code == ExitCode.UNKNOWN:
                self._end("the engine process ended for a reason that may lie in its JVM")
            self._clear()
        self._end("the JVM has served long enough")

    def _wait_for(self, descriptor: int) -> None:
        """Wait until there is something to read; end when the JVM or the supervisor ends."""
        poll = select.poll()
        for each in {descriptor, self._jvm_ends}:
            poll.register(each, select.POLLIN)
        poll.register(self._talk, select.POLLIN if descriptor == self._talk.fileno() else 0)
        ready = {each for each, _ in poll.poll()}
        if self._jvm_ends in ready:
            self._end("the JVM has ended")
        if descriptor not in ready:
            self._end("the supervisor has ended")

    def _request(self) -> tuple[int, int]:
        size = array.array("i").itemsize
        message, extra, _, _ = self._talk.recvmsg(len(START), socket.CMSG_SPACE(2 * size))
        if message != START:
            self._end("the supervisor has ended")
        stdin, status = array.array("i", extra[0][2])
        return stdin, status

    def _say(self, what: Forked | Ended) -> None:
        try:
            self._talk.send(what.encode())
        except OSError:
            self._end("the supervisor has ended")

    def _clear(self) -> None:
        signal.alarm(_CLEAR_S)  # ends this process
        try:
            self._jvm.clear()
        except Exception as error:
            self._end(f"the JVM cannot be cleared: {error}")
        signal.alarm(0)

    def _engine(self, stdin: int, status: int) -> NoReturn:
        """Be the engine process."""
        try:
            os.setsid()
            stand_back(STARTING)
            ctypes.CDLL(None).prctl(_PR_SET_NAME, PROCESS_NAME.encode())
            os.dup2(stdin, 0)
            os.close(stdin)
            os.close(self._jvm_ends)
            self._talk.close()
            self._jvm.let_go()
            os.environ[STATUS_FD_VARIABLE] = str(status)

            spare_the_living()

            from espha.engine.main import run_engine

            run_engine(self._settings)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ExitCode.UNKNOWN)

    def _end(self, reason: str) -> NoReturn:
        _LOG.warning(f"the fork server ends: {reason}")
        sys.stdout.flush()
        os._exit(0)  # the engine process dies with it, and so does the JVM


def main() -> None:
    """Serve the supervisor that has started this process."""
    configure()
    stand_back(STARTING)
    die_with_parent()
    talk = socket.socket(fileno=int(os.environ.pop(FORK_SERVER_FD_VARIABLE)))
    talk.set_inheritable(False)
    _ForkServer(load_settings(), talk).run()


if __name__ == "__main__":
    main()
