"""Input rows at a steady rate, from a thread of their own."""

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from support.deployment import Deployment


class Feeder:
    """Publishes rows one by one until it is stopped, at the latest when its block ends.

    `rows` yields (source window, text of the row), without end.
    """

    def __init__(self, deployment: Deployment, rows: Iterable[tuple[str, str]], rate: float):
        """Make ready to publish `rate` rows a second."""
        self._deployment, self._rows, self._pause_s = deployment, rows, 1 / rate
        self._ended = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self.sent = 0

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop; a test that has failed already keeps its own error."""
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for window, text in self._rows:
                if self._ended.wait(self._pause_s):
                    return
                self._deployment.publish(window, [text])
                self.sent += 1
        except Exception as error:
            self._failed = error

    def stop(self) -> int:
        """Stop; return the number of rows published. Raises what kept it from publishing."""
        self._end()
        if self._failed:
            raise self._failed
        return self.sent
