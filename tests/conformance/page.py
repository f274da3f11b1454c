"""The page of results, as Markdown; it is also the ledger that later runs are held against."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from conformance.corpus import ROOT
from conformance.suite import Verdict

PAGE = ROOT / "docs/reference/compatibility.md"
_INTRO = """\
# Compatibility with public projects

This page is written by `make conformance`. It runs the projects of a corpus of public SAS Event \
Stream Processing projects: the examples of SAS Event Stream Processing Studio, the code snippets \
for transformation and analysis windows, the failover project for Kafka, and the test projects of \
the Python client. Each project is read as it is, and run on the data that comes with it, by the \
kernel, as `espha run --engine kernel` does.

The columns say:

- **loads**: `espha check` accepts the project;
- **runs**: it runs to its end on its own data, or on no rows where the corpus has no data for it;
- **documented**: how many windows give the result that the project's README, a picture in it, or \
a result file shows, row by row, out of all windows whose results are shown. Figures are compared \
as exactly as they are shown. For some projects that show no result, what must come out was \
computed from their data by other means. The files in `tests/conformance/expected` name the source \
of each window's rows.

*Not supported* are projects that need what espha leaves out on purpose: trained models, analytic \
stores, DS2 and C++ code, SAS text analytics, and sources of video and audio.
"""


def page(found: Sequence[Verdict]) -> str:
    """Return the page."""
    parts = [_INTRO, _summary(found), _table(found)]
    if any(verdict.differences for verdict in found):
        parts.append(_differences(found))
    return "\n".join(parts)


def _summary(found: Sequence[Verdict]) -> str:
    supported = [verdict for verdict in found if verdict.supported]
    loads = sum(verdict.loads for verdict in supported)
    runs = sum(verdict.runs for verdict in supported)
    windows = sum(verdict.documented for verdict in supported)
    differences = [one for verdict in supported for one in verdict.differences]
    explained = sum(bool(one.cause) for one in differences)
    rows = [
        ("projects", len(found)),
        ("of these, supported", len(supported)),
        ("of these, load", f"{loads} ({_percent(loads, len(supported))})"),
        ("of these, run", f"{runs} ({_percent(runs, len(supported))})"),
        ("windows with documented results", windows),
        ("of these, the same as documented", windows - len(differences)),
        ("of these, different for a cause named below", explained),
        ("of these, different", len(differences) - explained),
    ]
    return "| | |\n| --- | ---: |\n" + "".join(f"| {name} | {value} |\n" for name, value in rows)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole} %" if whole else "-"


def _table(found: Sequence[Verdict]) -> str:
    lines = ["## Projects", "", "| project | loads | runs | documented | remark |"]
    lines.append("| --- | --- | --- | --- | --- |")
    lines += [f"| {' | '.join(row(verdict))} |" for verdict in found]
    return "\n".join(lines) + "\n"


def row(verdict: Verdict) -> tuple[str, str, str, str, str]:
    """Return the cells of one project."""
    documented = ""
    if verdict.documented and verdict.supported:
        documented = f"{verdict.documented - len(verdict.differences)} of {verdict.documented}"
    loads = _yes(verdict.loads) if verdict.supported else "not supported"
    runs = _yes(verdict.runs) if verdict.supported else ""
    # As text and not as code, a long path breaks where the page is narrow.
    return verdict.name, loads, runs, documented, _escaped(verdict.remark)


_LOADS: Final = frozenset({"yes", "**no**", "not supported"})


def _yes(true: bool) -> str:
    return "yes" if true else "**no**"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ").replace("@", "&#64;")


def _differences(found: Sequence[Verdict]) -> str:
    lines = ["## Differences", ""]
    for verdict in found:
        for one in verdict.differences:
            cause = one.cause or "not explained"
            lines.append(f"- `{verdict.name}`, window `{one.window}`: {_escaped(cause)}")
    return "\n".join(lines) + "\n"


def ledger(path: Path = PAGE) -> dict[str, tuple[str, str, str]]:
    """Return what a page says of each project: loads, runs, documented."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) >= 5 and cells[1] in _LOADS:
            found[cells[0]] = (cells[1], cells[2], cells[3])
    return found


def worse(verdict: Verdict, said: tuple[str, str, str]) -> str:
    """Say in what a project is worse than a page says; empty: in nothing."""
    _, loads, runs, documented, remark = row(verdict)
    for name, before, now in (("loads", said[0], loads), ("runs", said[1], runs)):
        if before == "yes" != now:
            return f"{name}: {now} ({remark})"
    if said[2] and _first(documented) < _first(said[2]):
        told = "\n".join(f"{one.window}: {one.text}" for one in verdict.differences)
        return f"documented: {documented}, it was {said[2]}\n{told}"
    return ""


def _first(text: str) -> int:
    return int(text.split(maxsplit=1)[0]) if text else 0
