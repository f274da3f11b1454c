"""How an engine process begins and ends."""

import signal
import threading

import pytest
from py4j.protocol import Py4JError

from espha.engine.main import SilentSparkError, greet
from espha.pipeline.session import worker_ended
from espha.protocol.states import EndReason, ExitCode

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


def test_a_jvm_outlives_its_worker() -> None:
    """Only what may be the JVM's own fault ends it too; see the fork server."""
    assert EndReason.WORKER.code != ExitCode.UNKNOWN == EndReason.UNKNOWN.code
