"""What the user sees while something takes its time: one line a step, with elapsed times."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

HEARTBEAT_SECONDS = 30.0
_began = time.monotonic()


class Failure(Exception):  # noqa: N818  (it is not always an error: often something to do)
    """Something the user has to know; the text is a sentence with what to do about it."""


def line(text: str) -> None:
    """Print one line with the seconds since the program began in front."""
    print(f"[{time.monotonic() - _began:6.1f} s] {text}", flush=True)


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Announce `what`, say every half minute that it still goes on, and how long it took."""
    line(f"{what} …")
    began = time.monotonic()
    over = threading.Event()

    def beat() -> None:
        while not over.wait(HEARTBEAT_SECONDS):
            line(f"{what} … still, after {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    line(f"{what}: {time.monotonic() - began:.1f} s")


def program(main: Callable[[], None]) -> None:
    """Run `main` as a program: a failure is one sentence and exit code 1, never a traceback."""
    try:
        main()
    except Failure as failure:
        print(f"espha: {failure}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("espha: interrupted; the next run goes on from here", file=sys.stderr)
        sys.exit(130)
