"""A run on Spark: the batch job of an engine, without Kafka around it."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from espha.jvm import java_program
from espha.model import Field, Project
from espha.model.events import Event
from espha.offline.arrivals import Arrival
from espha.offline.engines import Outcome
from espha.offline.spark_model import DEAD_LETTERS, plan_of, spark_model
from espha.protocol.records import ID_HEADER, REASON_HEADER, MessageId
from espha.reader import read_project
from espha.records.text import decoder, line_formatter, split

if TYPE_CHECKING:
    from espha.pipeline.job import Input, Output

_LOOK_AGAIN_MS: Final = 250


def why_no_spark(jars: Path) -> str:
    """Say what of Spark is missing on this machine; empty: nothing.

    Args:
        jars: the directory with the engine's own jar.
    """
    for module in ("pyspark", "pandas", "pyarrow"):
        if find_spec(module) is None:
            return f"the Python package {module} is not installed (espha[engine])"
    if shutil.which(java_program()) is None:
        return "there is no java"
    if not any(jars.glob("espha-*.jar")):
        return f"the engine's jar is not in {jars} (ESPHA_JARS)"
    return ""


class SparkEngine:
    """The batch job of an engine on a Spark session of its own.

    Rows are written as records of a source's topic, decoded by Catalyst, run through the kernel
    in Spark's Python worker, and encoded by Catalyst. Only events of the windows that somebody
    wants come out.
    """

    polled = True

    def __init__(
        self,
        xml: bytes,
        tokens: Mapping[str, str],
        environment: Mapping[str, str],
        published: Collection[str],
        jars: Path,
    ) -> None:
        """Start Spark, which takes seconds.

        Args:
            xml: the model.
            tokens: values from outside.
            environment: values for tokens that have none otherwise.
            published: "query/window" of the windows whose events are wanted.
            jars: the directory with the engine's own jar.
        """
        from espha.pipeline.job import Batch, BatchJob
        from espha.pipeline.session import open_session

        self.shown = published
        text = spark_model(xml, tokens, environment, published)
        self._project: Project = read_project(text)
        sources = [path for path, one in self._project.windows.items() if one.type == "source"]
        with _stderr_in_a_file():
            self._session = open_session("local[1]", jars)
        plan = plan_of(sources, published)
        self._job = BatchJob(self._session, text, self._project, plan, exact=True)
        self._batch = Batch
        self._sequence = 0
        windows = self._project.windows
        self._write = {path: _record_writer(windows[path].fields) for path in sources}
        self._read = {path: decoder(windows[path].fields) for path in published}

    def step(self, clock: int, arrivals: Sequence[Arrival]) -> Outcome:
        """See `espha.offline.engines.Engine`."""
        outcome = Outcome()
        inputs: list[Input] = []
        sent: list[Arrival] = []
        for arrival in arrivals:
            if arrival.event is None:
                outcome.refused.append((arrival, "", arrival.reason))
            else:
                inputs.append(self._input(arrival.window, len(sent), arrival.event))
                sent.append(arrival)
        expect = self._sequence or None
        self._sequence += 1
        (result,) = self._job.run([self._batch(expect, self._sequence, clock, inputs)])
        for output in result.outputs:
            self._sort_in(output, sent, outcome)
        return outcome

    def _input(self, window: str, place: int, event: Event) -> "Input":
        from espha.pipeline.job import Input

        return Input(window, place, self._write[window](event))

    def _sort_in(self, output: "Output", sent: Sequence[Arrival], outcome: Outcome) -> None:
        headers = dict(output.headers)
        window, place, _ = MessageId.parse(headers[ID_HEADER])
        arrival = sent[place] if window in self._write else None
        if output.topic == DEAD_LETTERS:
            where, reason = self._where(headers[REASON_HEADER].decode())
            outcome.refused.append((arrival, where, reason))
            return
        opcode, flags, *cells = split(output.value.decode())
        event = self._read[output.topic](opcode, flags, cells)
        (outcome.ticked if arrival is None else outcome.passed).append((output.topic, event))

    def _where(self, reason: str) -> tuple[str, str]:
        """Take the window off a reason that begins with one."""
        window, colon, rest = reason.partition(": ")
        return (window, rest) if colon and window in self._project.windows else ("", reason)

    def due(self, now: int) -> int | None:
        """See `espha.offline.engines.Engine`; the worker is asked now and then."""
        return now + _LOOK_AGAIN_MS

    def close(self) -> None:
        """End Spark."""
        self._session.stop()


@contextlib.contextmanager
def _stderr_in_a_file() -> Iterator[None]:
    """Let programs that start meanwhile write their messages to a file, all their life.

    What the JVM says when it starts is no concern of somebody who tries out a model.

    Raises:
        RuntimeError: what was done meanwhile failed; the text is the end of the file.
    """
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        except Exception as error:
            file.seek(0)
            said = file.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError((said or [str(error)])[-1]) from error
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _record_writer(fields: Sequence[Field]) -> Callable[[Event], bytes]:
    """Return the function that writes an event as the record that a deployment would get."""
    write = line_formatter(fields, precision=None)
    return lambda event: write(event).encode("utf-8", "surrogateescape")
