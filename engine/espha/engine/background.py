"""A piece of work beside the main loop, which waits for it later."""

import threading
import time
from collections.abc import Callable

import structlog

_LOG = structlog.get_logger()


class Background:
    """Runs something in a thread of its own; where there is no room for one, `wait` does it."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        """Begin now."""
        self._work, self._lock = work, threading.Lock()
        self._failure: BaseException | None = None
        self._done = False
        self.took_s = 0.0
        """How long it took, s."""
        self._thread: threading.Thread | None = threading.Thread(
            target=self._run, name=name, daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError as error:
            _LOG.warning("nothing goes on beside the main loop", work=name, error=str(error))
            self._thread = None

    @property
    def ended(self) -> bool:
        """Whether it has come to its end, or nobody is at it."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self) -> None:
        """Wait for its end; raises what it has raised."""
        if self._thread is not None:
            self._thread.join()
        else:
            self._do_now()
        if self._failure is not None:
            raise self._failure

    def _do_now(self) -> None:
        with self._lock:  # once, whoever waits
            if not self._done:
                self._run()
                self._done = True

    def _run(self) -> None:
        started = time.monotonic()
        try:
            self._work()
        except BaseException as error:  # whoever waits gets it
            self._failure = error
        self.took_s = time.monotonic() - started
