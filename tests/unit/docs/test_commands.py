"""Each command that the pages name exists: `espha …` with its options, `make …`, `python -m …`."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.docs.cli import commands
from unit.docs.markdown import ROOT, code_lines, inline_code, name, pages

COMMANDS = {tuple(path.split()): command for path, command in commands()}
GROUPS = {path[:length] for path in COMMANDS for length in range(1, len(path))}
TARGETS = set(
    re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)
_MODULE = re.compile(r"python3? -m ([a-z_][\w.]*)")
_ANYWHERE = {"--help"}


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_command_exists(page: Path) -> None:
    written = [*code_lines(page), *inline_code(page)]
    assert [problem for line in written if (problem := _wrong(line))] == []


def _wrong(line: str) -> str:
    """Say what is wrong with the first command of ours in a line; "" when nothing is."""
    if made := re.match(r"(?:\$ )?make ((?:[a-z-]+ ?)+)", line):
        missing = [one for one in made[1].split() if one not in TARGETS]
        return f"make {missing}" if missing else ""
    if (module := _MODULE.search(line)) and not _found(module[1]):
        return f"python -m {module[1]}"
    return "; ".join(filter(None, (_wrong_call(call) for call in _calls(line))))


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _calls(line: str) -> list[list[str]]:
    """Return the words of each call of espha in a line, `espha` first."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []
    starts = [
        number
        for number, word in enumerate(words)
        if word in ("espha", ".venv/bin/espha")
        and (number == 0 or words[number - 1] in ("--", "$"))
    ]
    ends = [*starts[1:], len(words)][: len(starts)]
    return [["espha", *words[start + 1 : end]] for start, end in zip(starts, ends, strict=True)]


def _wrong_call(words: list[str]) -> str:
    path = next(
        (words[:length] for length in range(len(words), 0, -1) if _known(words[:length])), []
    )
    if tuple(path) in GROUPS:
        unknown = words[len(path) : len(path) + 1]
        return f"{' '.join(path)} {unknown[0]}" if unknown and unknown[0][0].islower() else ""
    command = COMMANDS[tuple(path)]
    if "words" in {one.name for one in command.params}:  # those of another program
        return ""
    known = _ANYWHERE | {
        spelled for one in command.params for spelled in (*one.opts, *one.secondary_opts)
    }
    own = words[: words.index("--")] if "--" in words else words
    options = [re.split("[=,]", one)[0] for one in own if one.startswith("-") and len(one) > 1]
    unknown = [one for one in options if one not in known]
    return f"{' '.join(path)} {unknown}" if unknown else ""


def _known(words: list[str]) -> bool:
    return tuple(words) in COMMANDS or tuple(words) in GROUPS


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("espha run model.xml --input w=f.csv,header=1", ""),
        ("espha run model.xml --inputs w=f.csv", "espha run ['--inputs']"),
        ("kubectl exec demo-engine-0 -- espha switchover --too x", "espha switchover ['--too']"),
        ("espha supervise --no-election -- espha adapter output --config FILE", ""),
        ("espha supervise -- espha adapter outputs", "espha adapter outputs"),
        ("espha adapter run dfesp_fs_adapter -k pub", ""),
        ("espha rum", "espha rum"),
        ("make demo", ""),
        ("make demos", "make ['demos']"),
        ("python -m espha.protocol.references settings", "python -m espha.protocol.references"),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str, wrong: str) -> None:
    assert _wrong(line) == wrong
