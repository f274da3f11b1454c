"""`espha check`, as a function that returns an exit code."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel

from espha.model import ModelError, Project
from espha.model.problems import Problem
from espha.offline.command import DONE, REFUSED, Say, load, read
from espha.offline.options import UsageError


class CheckedField(BaseModel):
    """A field of a window."""

    name: str
    type: str
    key: bool


class CheckedWindow(BaseModel):
    """A window of an accepted model; `path` is "query/window"."""

    path: str
    type: str
    index: str
    fields: list[CheckedField]


class Finding(BaseModel):
    """A problem or a warning, and where: the line (from 1), the element and its name."""

    line: int
    element: str
    name: str
    reason: str


class Checked(BaseModel):
    """What `espha check --json` prints.

    Attributes:
        model: the file.
        accepted: it runs.
        error: why it could not be read at all; empty: it could.
        windows: those of an accepted model.
        problems: every reason for which it is refused.
        warnings: what has no effect.
    """

    model: str
    accepted: bool = False
    error: str = ""
    windows: list[CheckedWindow] = []
    problems: list[Finding] = []
    warnings: list[Finding] = []


def check(
    model: Path, settings: Sequence[str], out: Say, err: Say, *, as_json: bool = False
) -> int:
    """Print the windows of a model, or every problem with its line.

    Args:
        model: the XML.
        settings: `NAME=VALUE` for tokens.
        out: takes a line for each window, or the JSON of a `Checked`.
        err: takes problems and warnings that are not JSON.
        as_json: print JSON.
    """
    try:
        if as_json:
            checked = _checked(model, settings)
            out(checked.model_dump_json(indent=2))
            return DONE if checked.accepted else REFUSED
        project = load(model, settings, err, checking=True)
    except UsageError as error:
        err(str(error))
        return REFUSED
    if project is None:
        return REFUSED
    for path, window in project.windows.items():
        fields = ", ".join(f"{f.name}{'*' if f.key else ''}:{f.type}" for f in window.fields)
        out(f"{path}  {window.type}  {window.index}  {fields}")
    return DONE


def _checked(model: Path, settings: Sequence[str]) -> Checked:
    try:
        project = read(model, settings, checking=True)
    except OSError as error:
        return Checked(model=str(model), error=error.strerror or str(error))
    except ModelError as error:
        return Checked(model=str(model), problems=_findings(error.problems))
    return Checked(
        model=str(model),
        accepted=True,
        windows=_windows(project),
        warnings=_findings(project.warnings),
    )


def _findings(problems: Iterable[Problem]) -> list[Finding]:
    return [
        Finding(line=one.line, element=one.element, name=one.name, reason=one.reason)
        for one in problems
    ]


def _windows(project: Project) -> list[CheckedWindow]:
    return [
        CheckedWindow(
            path=path,
            type=window.type,
            index=window.index,
            fields=[
                CheckedField(name=field.name, type=field.type, key=field.key)
                for field in window.fields
            ],
        )
        for path, window in project.windows.items()
    ]
