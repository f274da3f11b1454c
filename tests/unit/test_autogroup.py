"""The share of the processor that a session gets, on a Linux that knows such shares."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from espha import autogroup
from espha.autogroup import STARTING, stand_back, take_usual_share

HERE = Path("/proc/self/autogroup")
known = pytest.mark.skipif(not HERE.exists(), reason="this Linux shares by processes")

STARTS = """
import os, sys
from pathlib import Path
from espha.autogroup import STARTING, stand_back, take_usual_share
def share(pid): return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])
stand_back(STARTING)
parent = os.getpid()
if os.fork() == 0:
    os.setsid()
    stand_back(STARTING)
    print(share(parent), share("self"))
    while not take_usual_share():
        pass
    print(share(parent), share("self"), flush=True)
    os._exit(0)
os.wait()
"""


@known
def test_who_starts_stands_back_and_its_parent_with_it() -> None:
    told = subprocess.run(
        [sys.executable, "-c", STARTS],
        start_new_session=True, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert told.stdout.splitlines() == ["10 10", "0 0"]


def test_linux_may_want_to_be_asked_again(share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who is root may change shares more often than each tenth of a second."""

    def busy(*_: object) -> None:
        raise BlockingIOError

    stand_back(STARTING)
    with monkeypatch.context() as while_busy:
        while_busy.setattr(Path, "write_text", busy)
        assert not take_usual_share()
    assert share.read_text() == "10"
    assert take_usual_share()
    assert share.read_text() == "0"


def test_who_has_its_share_asks_for_nothing(share: Path) -> None:
    """Else the first of two would keep the second one from ever being changed.

    Who has never stood back may have a share that somebody else has given it.
    """
    share.write_text("/autogroup-7 nice 5\n")
    assert take_usual_share()
    assert share.read_text() == "/autogroup-7 nice 5\n"
    stand_back(STARTING)
    assert take_usual_share()
    share.write_text("/autogroup-7 nice 0\n")
    assert take_usual_share()
    assert share.read_text() == "/autogroup-7 nice 0\n"


def test_a_linux_without_such_shares_is_none_of_its_business(share: Path) -> None:
    share.parent.rmdir()
    stand_back(STARTING)
    assert take_usual_share()


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process's share, in a /proc of its own; it is empty at first."""
    monkeypatch.setattr(autogroup, "PROC", tmp_path)
    own = tmp_path / str(os.getpid())
    own.mkdir()
    return own / "autogroup"
