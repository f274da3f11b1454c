"""`make mutations`: take each protection out of a copy of this checkout, and see its test fail."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from chaos.here import ROOT
from espha.local.jars import PROFILES
from mutations.protections import MUTATIONS, Mutation
from support.servers import JAR_CACHE
from tools.jars import SOURCES

_COPIED = ("engine", "operator", "tests", "tools", "manifests", "pyproject.toml")
_LIMIT_S = 600
_CONSOLE = Console() if sys.stdout.isatty() else Console(width=160)


def main() -> int:
    """Print a table of mutations; return 1 when a test did not fail, or for another reason."""
    parser = argparse.ArgumentParser(prog="python -m mutations", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="those with this in their text")
    parser.add_argument(
        "--numbers",
        metavar="FIRST-LAST",
        type=numbers,
        default="1-",
        help='of the list; a long run that has ended early goes on with its next number: "120-"',
    )
    asked = parser.parse_args()
    chosen = chosen_of(asked.only, asked.numbers)
    table = Table("invariant", "taken out", "test", "", "what the test said")
    alive = 0
    with tempfile.TemporaryDirectory(prefix="espha-mutations-") as folder:
        for number, each in chosen.items():
            with _CONSOLE.status(f"{each.invariant}: {each.text}"):
                copy = _copy(Path(folder) / "checkout")
                target = copy / each.file
                target.write_text(each.applied_to(target.read_text()))
                red, said = _run(each, copy, _own_jars(each, copy))
            alive += not red
            verdict = "[green]red, as it must be" if red else "[bold red]NOT SEEN"
            _CONSOLE.print(
                f"[{number}/{len(MUTATIONS)}] {verdict}[/]: {each.text}", highlight=False
            )
            if not red:
                _CONSOLE.print(said, markup=False, highlight=False)
            table.add_row(each.invariant, each.text, each.test.partition("::")[2], verdict, said)
    _CONSOLE.print(table)
    return 1 if alive else 0


def numbers(text: str) -> range:
    """Return the numbers that "3-7" names, or "3-": from the third one on.

    Raises:
        argparse.ArgumentTypeError: it names none.
    """
    found = re.fullmatch(r"([0-9]+)-([0-9]*)", text)
    named = range(int(found[1]), int(found[2] or len(MUTATIONS)) + 1) if found else range(0)
    if not named or named[0] < 1 or named[-1] > len(MUTATIONS):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not FIRST-LAST or FIRST- with numbers from 1 to {len(MUTATIONS)}"
        )
    return named


def chosen_of(only: str, wanted: range) -> dict[int, Mutation]:
    """Return, by their numbers in the list, those with a text in theirs."""
    every = enumerate(MUTATIONS, start=1)
    return {number: each for number, each in every if number in wanted and only in each.text}


def _copy(target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / name)
    return target


def _own_jars(mutation: Mutation, checkout: Path) -> dict[str, str]:
    """Compile the copy's Java, if that is what was changed; return the environment that uses it."""
    if not mutation.file.endswith(".java"):
        return {}
    changed = next(
        profile
        for profile, folder in SOURCES.items()
        if Path(mutation.file).is_relative_to(folder.relative_to(ROOT))
    )
    cache = checkout / "cache"
    mine = cache / "jars" / changed
    mine.mkdir(parents=True)
    for profile in {*PROFILES} - {changed}:
        (cache / "jars" / profile).symlink_to(JAR_CACHE / profile)
    for jar in (JAR_CACHE / changed).glob("*.jar"):
        shutil.copy(jar, mine)
    program = (
        "import sys; from pathlib import Path; from tools.jars import compile_own; "
        "compile_own(sys.argv[1], *map(Path, sys.argv[2:]))"
    )
    subprocess.run(
        [sys.executable, "-c", program, changed, mine, checkout / "classes"],
        cwd=checkout,
        check=True,
        env={**os.environ, **_path(checkout)},
    )
    return {"ESPHA_CACHE": str(cache)}


def _path(checkout: Path) -> dict[str, str]:
    """Return what has processes, in any folder, find the copy and not what is installed."""
    folders = [checkout / name for name in ("engine", "operator", "tests", "")]
    return {"PYTHONPATH": os.pathsep.join(map(str, folders))}


def _run(mutation: Mutation, checkout: Path, changes: dict[str, str]) -> tuple[bool, str]:
    """Run the test in the copy; say whether it failed for the reason that was expected, and why."""
    options = ("-x", "-q", "-p", "no:cacheprovider", "-m", "")  # long ones, too
    command = [sys.executable, "-m", "pytest", *options, mutation.test]
    try:
        ran = subprocess.run(
            command,
            cwd=checkout,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
            env={**os.environ, **_path(checkout), **changes},
        )
    except subprocess.TimeoutExpired:
        return False, f"it has not ended within {_LIMIT_S} s"
    said = [line[1:].strip() for line in ran.stdout.splitlines() if line.startswith("E  ")]
    reason = next((line for line in said if mutation.says in line), "")
    if ran.returncode == 1 and reason:
        return True, reason[:120]
    return False, (said or ran.stdout.splitlines() or [f"exit {ran.returncode}"])[-1][:120]


if __name__ == "__main__":
    sys.exit(main())
