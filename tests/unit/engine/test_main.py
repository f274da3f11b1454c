"""How an engine process begins and ends."""

import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from py4j.protocol import Py4JError

from espha.engine import main
from espha.engine.follower import Diverged
from espha.engine.main import SilentSparkError, greet
from espha.ha import progress_judge
from espha.kafka.reader import LogError
from espha.pipeline import stream
from espha.pipeline.session import worker_ended
from espha.protocol.child_side import Control
from espha.protocol.settings import Settings
from espha.protocol.states import EndReason, EngineState, ExitCode, Step
from espha.recovery.divergence import DivergenceLog
from espha.recovery.restore import Recovery

LIMIT_S = 20


class Query:
    """Answers, or keeps its rows in some buffer."""

    def __init__(self, *, silent: bool = False) -> None:
        self._answered = threading.Event()
        if not silent:
            self._answered.set()

    def greet(self) -> None:
        """Make an empty call."""
        assert self._answered.wait(LIMIT_S), "it is waited for without end"


def test_a_query_that_keeps_rows_back_is_told_with_the_versions() -> None:
    """It would wait for ever otherwise, and look alive."""
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(SilentSparkError, match=r"Spark's version, which is 4\."):
        greet(Query(silent=True), 0.05)
    assert signal.getsignal(signal.SIGALRM) == before


def test_a_query_that_answers_is_watched_no_longer() -> None:
    greet(Query(), 60)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", True),
        ("org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception", True),
        ("java.lang.OutOfMemoryError: Java heap space", False),
        ("java.net.ConnectException: Connection refused", False),
    ],
)
def test_the_death_of_a_worker_is_told_from_a_jvm_that_is_odd(said: str, ended: bool) -> None:
    assert (
        worker_ended(Py4JError(f"An error occurred while calling o1.run.\n: Caused by: {said}"))
        == ended
    )


def leave(code: int) -> NoReturn:
    raise SystemExit(code)


def test_who_has_diverged_lets_others_go_on_before_it_asks_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A peer that is gone, or a volume that hangs, takes time, and others wait for its place."""
    done: list[object] = []

    class Told(Control):
        def let_go(self) -> None:
            done.append("let go")

        def report(self, state: EngineState, in_sync: bool, *_: Any, **__: Any) -> None:
            done.append((state, in_sync))

    def assemble(*_: Any) -> NoReturn:
        done.clear()
        raise Diverged(4, 2, "order record 4: 1 outputs", broken=("t", 7))

    def asked(*_: Any) -> dict[str, Any]:
        done.append("asked")
        return {}

    monkeypatch.delenv("ESPHA_STATUS_FD", raising=False)
    monkeypatch.setattr(main, "Control", Told)
    monkeypatch.setattr(main, "_assemble", assemble)
    monkeypatch.setattr(main, "statuses", asked)
    monkeypatch.setattr(DivergenceLog, "condemn", lambda self: done.append("condemned"))
    monkeypatch.setattr("os._exit", leave)
    with pytest.raises(SystemExit) as ended:
        main.run_engine(Settings(bootstrap="none:1", name="e", snapshots=str(tmp_path)))
    assert ended.value.code == EndReason.DIVERGED.code
    assert done[:4] == ["let go", (EngineState.DIVERGED, False), "condemned", "asked"]
    noted = Recovery(Settings(bootstrap="none:1", name="e", snapshots=str(tmp_path))).divergences
    assert (noted.last.at, noted.last.broken) == (4, (("t", 7),))


def test_who_cannot_replay_notes_it_for_its_next_life(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted: list[str] = []

    def assemble(*_: Any) -> NoReturn:
        raise LogError("order records 1 to 8 are gone")

    monkeypatch.delenv("ESPHA_STATUS_FD", raising=False)
    monkeypatch.setattr(main, "_assemble", assemble)
    monkeypatch.setattr(Recovery, "replay_failed", lambda self: noted.append("noted"))
    monkeypatch.setattr("os._exit", leave)
    with pytest.raises(SystemExit) as ended:
        main.run_engine(Settings(bootstrap="none:1", name="e", snapshots=str(tmp_path)))
    assert (ended.value.code, noted) == (EndReason.TOPIC.code, ["noted"])


def test_each_attempt_to_restore_has_a_time_of_its_own(tmp_path: Path) -> None:
    """Several snapshots may be tried, and whoever judges knows steps only."""
    done: list[object] = []
    job = SimpleNamespace(restore=lambda *_: done.append("restored"))
    doing = SimpleNamespace(begin=done.append)
    main._Announced(cast("Any", job), cast("Any", doing)).restore(tmp_path, 0, 7)
    assert done == [Step.STARTING, "restored"]


def test_a_restore_fails_before_its_engine_is_killed() -> None:
    """Else it cannot say so, and each life would try the same snapshot."""
    assert stream.RESTORE_S + stream._MARGIN_S < progress_judge._START_S


def test_a_jvm_outlives_its_worker() -> None:
    """Only what may be the JVM's own fault ends it too; see the fork server."""
    assert EndReason.WORKER.code != ExitCode.UNKNOWN == EndReason.UNKNOWN.code
