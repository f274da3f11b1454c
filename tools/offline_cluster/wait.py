"""Waiting for something that another program brings about."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float, pause: float = 0.3) -> bool:
    """Return True as soon as a condition holds, False when it does not within `seconds`.

    Args:
        condition: asked at once, and again after each pause.
        seconds: how long to go on asking.
        pause: seconds between two questions.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
