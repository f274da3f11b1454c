"""`espha run` and `espha graph`, as functions that return an exit code."""

import contextlib
import gc
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from espha.connectors.files import FileSource, FileTarget
from espha.model import ModelError, Project
from espha.offline.clock import Clock, LeapingClock, SystemClock
from espha.offline.connectors import Connectors
from espha.offline.engines import Engine, KernelEngine
from espha.offline.feeds import FileFeed
from espha.offline.graph import svg
from espha.offline.options import (
    InputOption,
    PlotOption,
    TraceOption,
    UsageError,
    find_window,
    read_input,
    read_plot,
    read_settings,
    read_trace,
)
from espha.offline.places import Places, environment
from espha.offline.plot import PlotSink, why_no_plot
from espha.offline.report import Report
from espha.offline.runner import Runner
from espha.offline.senders import Sender
from espha.offline.sinks import FileSink, MessageSink, Sink
from espha.offline.spark import SparkEngine, why_no_spark
from espha.offline.watch import Screen, WatchSink
from espha.pipeline.jars import jars_folder
from espha.reader import read_project

DONE: Final = 0
TROUBLE: Final = 1
"""A file could not be read or written on the way, the rest was done."""
REFUSED: Final = 2
"""The model is refused, or the command line cannot be meant."""
BROKEN: Final = 3
"""A mistake of espha's own."""
INTERRUPTED: Final = 130

ENDLESS: Final = 1_000
"""Events after which what has no end is ended."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a user asks of `espha run`.

    Attributes:
        model: the XML.
        settings: `NAME=VALUE` for tokens.
        inputs: `WINDOW=FILE,…`.
        traces: `WINDOW=FILE`.
        watched: windows whose rows are printed.
        plots: `WINDOW:FIELD,FIELD=FILE`.
        connectors: run the model's own.
        idle_s: go on until no event has flowed for so many seconds; None: end with the inputs.
        endless: after how many events timers and scripts without an end are ended.
        engine: `spark`, `kernel`, or empty for what is there.
    """

    model: Path
    settings: Sequence[str] = ()
    inputs: Sequence[str] = ()
    traces: Sequence[str] = ()
    watched: Sequence[str] = ()
    plots: Sequence[str] = ()
    connectors: bool = True
    idle_s: float | None = None
    endless: int = ENDLESS
    engine: str = ""


def guarded(action: Callable[[], int], say: Say) -> int:
    """Return what `action` returns; an error that nobody foresaw is a sentence and `BROKEN`."""
    try:
        return action()
    except BrokenPipeError:
        # Whoever read standard output has seen enough, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return TROUBLE
    except Exception as error:
        if os.environ.get("ESPHA_DEBUG"):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        say(
            f"a mistake in espha, at {Path(place.filename).name}:{place.lineno}: "
            f"{type(error).__name__}: {error}; please report it (ESPHA_DEBUG=1 shows more)"
        )
        return BROKEN


def load(
    model: Path, settings: Sequence[str], say: Say, *, checking: bool = False
) -> Project | None:
    """Read a model; None when it is refused, and `say` was told why.

    Raises:
        UsageError: a setting is not `NAME=VALUE`.
    """
    try:
        project = read(model, settings, checking=checking)
    except OSError as error:
        say(f"{model}: {error.strerror}")
        return None
    except ModelError as error:
        say(str(error))
        return None
    for warning in project.warnings:
        say(f"{model}: warning: {warning}")
    return project


def read(model: Path, settings: Sequence[str], *, checking: bool = False) -> Project:
    """Read a model.

    Raises:
        UsageError: a setting is not `NAME=VALUE`.
        OSError: the file cannot be read.
        ModelError: the model is refused.
    """
    xml = model.read_bytes()
    return read_project(
        xml,
        str(model),
        tokens=_tokens(model, settings),
        environment=environment(xml),
        checking=checking,
        unnamed=model.stem,
    )


def _tokens(model: Path, settings: Sequence[str]) -> dict[str, str]:
    return {**Places(model).tokens(), **read_settings(settings)}


def graph(model: Path, settings: Sequence[str], output: Path | None, err: Say) -> int:
    """Write a picture of a model, as SVG.

    Args:
        model: the XML.
        settings: `NAME=VALUE` for tokens.
        output: where to; None: beside the model, with the ending `.svg`.
        err: is told what is wrong.
    """
    try:
        project = load(model, settings, err, checking=True)
    except UsageError as error:
        err(str(error))
        return REFUSED
    if project is None:
        return REFUSED
    file = model.with_suffix(".svg") if output is None else output
    try:
        file.write_bytes(svg(project))
    except OSError as error:
        err(f"{file}: {error.strerror}")
        return TROUBLE
    return DONE


def run(options: RunOptions, console: Console, clock: Clock | None = None) -> int:
    """Run a model on files; see `RunOptions`.

    Args:
        options: what to do.
        console: where messages go.
        clock: tells the time; the machine's by default.
    """
    report = Report(console)
    try:
        project = load(options.model, options.settings, report.say)
        if project is None:
            return REFUSED
        inputs = [read_input(text, project) for text in options.inputs]
        traces = [read_trace(text, project) for text in options.traces]
        plots = [read_plot(text, project) for text in options.plots]
        _check_files(traces)
        with contextlib.ExitStack() as opened:
            feeds = _open_inputs(inputs, project, opened)
            sinks: list[Sink] = [*_open_traces(traces, project, opened)]
            sinks += _watches(options.watched, project)
            sinks += _plots(plots, project)
            if options.connectors:
                sinks += _messages(project, report.say)
            leaping = clock is None and options.idle_s is None
            connectors = Connectors(
                project,
                Places(options.model),
                endless=options.endless if options.idle_s is None else None,
                say=report.say,
            )
            engine, name = _engine(options, project, sinks, report)
            runner = Runner(
                project,
                engine,
                clock or (LeapingClock() if leaping else SystemClock()),
                connectors=connectors if options.connectors else None,
                inputs=feeds,
                traces=sinks,
                idle_ms=None if options.idle_s is None else int(options.idle_s * 1000),
                leaping=leaping,
                report=report.refusal,
                progress=report.progress,
            )
            code = _run(runner, report)
        report.end(project, runner, name)
        return code
    except UsageError as error:
        report.say(str(error))
        return REFUSED


def _run(runner: Runner, report: Report) -> int:
    code = DONE
    # Rows are tuples without cycles: looking for garbage often costs a third of the time.
    gc.set_threshold(100_000, 20, 100)
    with report:
        try:
            runner.run()
        except KeyboardInterrupt:
            code = INTERRUPTED
        finally:
            runner.close()
    return TROUBLE if code == DONE and runner.tally.troubles else code


def _engine(
    options: RunOptions, project: Project, traced: Sequence[Sink], report: Report
) -> tuple[Engine, str]:
    """Start what runs the model; return it and its name."""
    if options.engine not in {"", "spark", "kernel"}:
        raise UsageError(f"--engine {options.engine!r} is not one of: spark, kernel")
    if options.engine == "kernel":
        return KernelEngine(project), "the kernel"
    jars = jars_folder()
    lacking = why_no_spark(jars)
    if lacking:
        if options.engine == "spark":
            raise UsageError(f"--engine spark: {lacking}")
        return KernelEngine(project), f"the kernel alone ({lacking})"
    report.say("starting Spark; --engine kernel starts at once and gives the same")
    written = {sink.window for sink in traced}
    if options.connectors:
        written |= {
            path
            for path, window in project.windows.items()
            if any(connector.type == "sub" for connector in window.connectors)
        }
    published = [path for path in project.windows if path in written]
    tokens = _tokens(options.model, options.settings)
    xml = options.model.read_bytes()
    try:
        return SparkEngine(xml, tokens, environment(xml), published, jars), "Spark"
    except RuntimeError as error:
        raise UsageError(f"Spark does not start: {error}; --engine kernel needs none") from error


def _messages(project: Project, say: Say) -> list[MessageSink]:
    sender = Sender(project)
    paths = [path for path in project.windows if path in sender.windows]
    return [MessageSink(path, sender, say) for path in paths]


def _watches(names: Sequence[str], project: Project) -> list[WatchSink]:
    screen = Screen(Console())
    return [WatchSink(project.windows[find_window(name, project)], screen) for name in names]


def _plots(options: Sequence[PlotOption], project: Project) -> list[PlotSink]:
    lacking = why_no_plot() if options else ""
    if lacking:
        raise UsageError(f"--plot: {lacking}")
    return [PlotSink(project.windows[one.window], one.fields, one.file) for one in options]


def _check_files(traces: list[TraceOption]) -> None:
    files = [trace.file for trace in traces]
    for file in files:
        if files.count(file) > 1:
            raise UsageError(f"--trace: two windows cannot be written to one file, {file}")


def _open_inputs(
    inputs: list[InputOption], project: Project, opened: contextlib.ExitStack
) -> list[FileFeed]:
    feeds = []
    for option in inputs:
        window = project.windows[option.window]
        source = FileSource(file=str(option.file), layout=option.layout, block=option.block)
        path = Path("/dev/stdin") if str(option.file) == "-" else option.file
        try:
            feed = FileFeed(str(option.file), window, path, source)
        except OSError as error:
            raise UsageError(f"--input: {option.file}: {error.strerror}") from None
        opened.callback(feed.close)
        feeds.append(feed)
    return feeds


def _open_traces(
    traces: list[TraceOption], project: Project, opened: contextlib.ExitStack
) -> list[FileSink]:
    sinks = []
    for option in traces:
        window = project.windows[option.window]
        target = FileTarget(file=str(option.file))
        path = Path("/dev/stdout") if str(option.file) == "-" else option.file
        try:
            sink = FileSink("--trace", window, path, target)
        except OSError as error:
            raise UsageError(f"--trace: {option.file}: {error.strerror}") from None
        opened.callback(sink.close)
        sinks.append(sink)
    return sinks
