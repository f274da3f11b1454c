"""All projects, tried out, and beside what is documented of each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from conformance.compare import Difference, compare
from conformance.corpus import Sample, samples
from conformance.expected import Expected, read_expected
from conformance.trial import Setup, Trial, try_out

_REASONS = 3
"""Reasons of a refusal that the page tells; the others are counted."""


@dataclass(frozen=True)
class Verdict:
    """How one project fares.

    Attributes:
        name: the project.
        supported: whether it needs only what espha has on purpose.
        loads: whether it is accepted.
        runs: whether it runs on its own data.
        documented: windows whose results are documented.
        differences: windows of these that give something else.
        remark: what a reader is told.
    """

    name: str
    supported: bool
    loads: bool
    runs: bool
    documented: int = 0
    differences: list[Difference] = field(default_factory=list)
    remark: str = ""

    @property
    def unexplained(self) -> list[Difference]:
        """Differences without a named cause."""
        return [one for one in self.differences if not one.cause]

    @property
    def good(self) -> bool:
        """Whether nothing is left to do."""
        return not self.supported or (self.loads and self.runs and not self.unexplained)


def verdicts(corpus: Path, part: str = "") -> Iterator[Verdict]:
    """Try out the projects whose names contain `part`."""
    expected = read_expected()
    for sample in samples(corpus):
        if part in sample.name:
            yield judge(sample, expected.get(sample.name))


def judge(sample: Sample, expected: Expected | None) -> Verdict:
    """Try out one project."""
    windows = () if expected is None else expected.window
    try:
        trial = try_out(sample, _setup(expected))
    except Exception as error:  # whatever it is, the other projects still count
        remark = f"{type(error).__name__}: {error}"
        return Verdict(sample.name, True, True, False, len(windows), remark=remark)
    if not trial.loads:
        remark = _refusal(trial)
        return Verdict(
            sample.name, not trial.excused, False, False, len(windows), _lost(expected), remark
        )
    found = [compare(window, trial.tables) for window in windows]
    differences = [one for one in found if one is not None]
    remark = _remark(trial, expected)
    return Verdict(sample.name, True, True, trial.runs, len(windows), differences, remark)


def _setup(expected: Expected | None) -> Setup:
    if expected is None:
        return Setup()
    return Setup(
        inputs=expected.inputs,
        files=expected.files,
        settings=expected.settings,
        properties=expected.properties,
        seconds=expected.seconds,
        idle=expected.idle,
    )


def _lost(expected: Expected | None) -> list[Difference]:
    windows = () if expected is None else expected.window
    return [Difference(window.name, "the project is refused", "") for window in windows]


def _refusal(trial: Trial) -> str:
    if trial.excused:
        lines = {problem.line for problem in trial.problems}
        kinds = {
            part.kind
            for part in trial.foreign
            if any(part.first <= line <= part.last for line in lines)
        }
        return "not supported: " + ", ".join(sorted(kinds or {p.kind for p in trial.foreign}))
    reasons = list(dict.fromkeys(str(problem) for problem in trial.problems))
    more = len(reasons) - _REASONS
    return "; ".join(reasons[:_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _remark(trial: Trial, expected: Expected | None) -> str:
    parts = []
    if not trial.runs and not trial.refusals:
        lines = trial.said.splitlines()
        said = [line for line in lines if line.strip() and ": warning: " not in line]
        parts.append(" ".join(said[:2]))
    if trial.missing:
        parts.append(f"the corpus lacks its {', '.join(sorted(set(trial.missing)))}")
    elif not trial.read:
        parts.append("there is no input for it")
    if trial.bad:
        parts.append(f"{trial.bad:,} of {trial.read:,} rows are refused")
    elif trial.refusals:
        parts.append(f"windows refuse events: {trial.refusals[0]}")
    if expected is not None and expected.note:
        parts.append(expected.note)
    return "; ".join(parts)
