"""Python runs this first in a process whose wall clock is turned (`chaos.clock`).

Only what Python code reads is turned, so that nothing but the program's own use of the clock is
put to the test. A library around the whole process (libfaketime) also gets in the way of locks and
waits that know nothing of the wall clock.
"""

import os
import time
from pathlib import Path

_AHEAD = Path(os.environ["CHAOS_CLOCK"])
_time, _time_ns = time.time, time.time_ns


def _ahead_s() -> int:
    return int(_AHEAD.read_text())


time.time = lambda: _time() + _ahead_s()
time.time_ns = lambda: _time_ns() + _ahead_s() * 1_000_000_000
