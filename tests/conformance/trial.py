"""One project: read, run on its own data, and looked at."""

import csv
import io
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

from lxml import etree
from rich.console import Console

from conformance.corpus import Sample
from conformance.foreign import Foreign, foreign_parts
from espha.model import ModelError, Project
from espha.model.problems import Problem
from espha.offline.command import INTERRUPTED, RunOptions, read, run

TIME_LIMIT_S = 90
START_MS = 1_704_067_200_000
"""Runs begin at 2024-01-01, and time passes only when they wait."""

PARSER = etree.XMLParser(resolve_entities=False, no_network=True)
DATA_TOKENS = ("ESPTESTDATA", "ESPTEST_DATA", "EPSTESTDATA", "TEST_LOCATION")
"""Tokens of the corpus that stand for the folder of the data, as they are written there."""


class TrialClock:
    """Time passes when somebody waits; after so many seconds a user presses Ctrl-C."""

    def __init__(self, seconds: float) -> None:
        self._now = START_MS
        self._end = START_MS + int(seconds * 1000)

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return self._now

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        self._now += milliseconds
        if self._now > self._end:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Setup:
    """How a project is run where it does not say so itself.

    Attributes:
        inputs: `WINDOW=FILE,…`, as `espha run --input` takes them.
        files: names in connectors, and the files of the corpus that are meant.
        settings: values of tokens.
        properties: values for properties of connectors, in place of the project's.
        seconds: how long it runs at most, by its own clock.
        idle: go on until no event has flowed for so many seconds.
        engine: what runs it.
    """

    inputs: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 3600
    idle: float | None = None
    engine: str = "kernel"


@dataclass
class Trial:
    """What came of a project.

    Attributes:
        sample: the project.
        foreign: its parts that are not supported on purpose.
        problems: why it was refused.
        code: how its run ended; None: it did not run.
        said: what the run told.
        read: rows that came in.
        bad: rows that were refused.
        refusals: what windows refused, each with the reason.
        missing: names of input files that the corpus lacks.
        tables: what left each window: the header, then a row of texts for each event.
    """

    sample: Sample
    foreign: list[Foreign] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    code: int | None = None
    said: str = ""
    read: int = 0
    bad: int = 0
    refusals: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)

    @property
    def loads(self) -> bool:
        """Whether the project was accepted."""
        return not self.problems

    @property
    def excused(self) -> bool:
        """Whether all reasons of a refusal lie in what is not supported on purpose."""
        return bool(self.problems) and all(self._is_foreign(one) for one in self.problems)

    @property
    def runs(self) -> bool:
        """Whether the run went through, no script failed, and not all input was refused."""
        failed = any("the script failed" in line for line in self.refusals)
        through = self.code in {0, INTERRUPTED} and not failed
        return through and (not self.read or self.bad < self.read)

    def _is_foreign(self, problem: Problem) -> bool:
        return any(part.first <= problem.line <= part.last for part in self.foreign)


def try_out(sample: Sample, setup: Setup) -> Trial:
    """Read a project and run it on its own data."""
    trial = Trial(sample, foreign_parts(sample.xml))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = sample.unpack(folder)
        xml, trial.missing = _adapted(sample.xml, setup, folder)
        model.write_bytes(xml)
        tokens = {**_outside(sample.xml, folder), **setup.settings}
        settings = [f"{name}={value}" for name, value in tokens.items()]
        try:
            project = read(model, settings)
        except ModelError as error:
            trial.problems = [_relative(problem, folder) for problem in error.problems]
            return trial
        trial.warnings = list(project.warnings)
        _run(trial, project, model, settings, setup)
    return trial


def _relative(problem: Problem, folder: Path) -> Problem:
    return replace(problem, reason=problem.reason.replace(str(folder), "."))


def _outside(xml: bytes, folder: Path) -> dict[str, str]:
    """Return values for tokens that whoever starts the project has to give."""
    tokens = dict.fromkeys(DATA_TOKENS, str(folder))
    text = xml.decode("utf-8", "replace")
    for name in re.findall(r"@([A-Z][A-Z_]+)@", text):
        built_in = name.startswith("ESP_PROJECT_")
        if not built_in and not re.search(rf"<property name=['\"]{name}['\"]", text):
            tokens.setdefault(name, f"some-{name.lower()}")
    return tokens


def _run(
    trial: Trial, project: Project, model: Path, settings: Sequence[str], setup: Setup
) -> None:
    folder = model.parent
    traces = {path: folder / f"trace-{place}.csv" for place, path in enumerate(project.windows)}
    options = RunOptions(
        model=model,
        settings=settings,
        inputs=[_absolute(text, folder) for text in setup.inputs],
        traces=[f"{path}={file}" for path, file in traces.items()],
        idle_s=setup.idle,
        engine=setup.engine,
    )
    console = Console(width=300, force_terminal=False, record=True, file=io.StringIO())
    with _time_limit(TIME_LIMIT_S):
        trial.code = run(options, console, TrialClock(setup.seconds))
    trial.said = console.export_text().replace(str(folder), "")
    trial.refusals = [line for line in trial.said.splitlines() if re.search(r" \(at .+\)$", line)]
    counted = re.search(r"([\d,]+) events in, ([\d,]+) bad", trial.said)
    if counted:
        trial.read, trial.bad = (int(text.replace(",", "")) for text in counted.groups())
    for path, file in traces.items():
        if file.exists():
            with file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
                header = ["opcode", "flags", *(f.name for f in project.windows[path].fields)]
                trial.tables[path] = [header, *csv.reader(lines)]


def _absolute(text: str, folder: Path) -> str:
    window, _, file = text.partition("=")
    return f"{window}={folder / file}"


def _adapted(xml: bytes, setup: Setup, folder: Path) -> tuple[bytes, list[str]]:
    """Set the paths of a project's files, as its instructions ask for.

    A connector's file that is not there is looked for by its name in the project's folder. One
    that the corpus lacks is made, without rows.

    Returns:
        The project, and the names of the files that the corpus lacks.
    """
    text = xml.decode("utf-8", "surrogateescape")
    tree = etree.fromstring(xml, PARSER)
    missing = []
    for connector in tree.iter("connector"):
        items = {
            item.get("name", ""): (item.text or "").strip() for item in connector.iter("property")
        }
        written = items.get("fsname", "")
        if written:
            path = _place(written, setup.files, folder)
            if not path.exists() and items.get("type", connector.get("type", "")).startswith("pub"):
                missing.append(path.name)
                path.touch()
            text = text.replace(written, str(path))
        for name in setup.properties.keys() & items.keys():
            text = _with_property(text, name, items[name], setup.properties[name])
    return text.encode("utf-8", "surrogateescape"), missing


def _place(written: str, files: Mapping[str, str], folder: Path) -> Path:
    """Return where a file is, or is to be, that a connector names."""
    name = written.rpartition("/")[2]
    meant = files.get(name, name)
    found = next((path for path in folder.rglob("*") if path.name == meant), None)
    return found or folder / meant


def _with_property(text: str, name: str, before: str, after: str) -> str:
    start = rf"(<property name=['\"]{name}['\"]>\s*(?:<!\[CDATA\[)?\s*)"
    return re.sub(f"{start}{re.escape(before)}", rf"\g<1>{after}", text)


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
