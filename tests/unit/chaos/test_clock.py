"""An engine's own wall clock."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chaos.clock import Clock

PROGRAM = "import time; print(time.time(), time.time_ns() / 1e9, time.monotonic())"


def test_only_the_wall_clock_is_turned(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    clock.set(-7200)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **clock.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    seconds, from_nanoseconds, monotonic = map(float, ran.stdout.split())
    assert time.time() - seconds == pytest.approx(7200, abs=60)
    assert from_nanoseconds == pytest.approx(seconds, abs=60)
    assert time.monotonic() - monotonic < 60
