"""Running other programs: without a shell, quiet while they work, loud when they fail."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.offline_cluster.say import Failure

TAIL_LINES = 30
Argument = str | Path


def run(
    *command: Argument,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
) -> str:
    """Run a program to its end and return what it printed, both streams together.

    Args:
        command: program and arguments.
        env: variables on top of this process's own.
        cwd: working directory.
        stdin: text for its standard input; nothing if not given.
        timeout: seconds after which the program is ended.

    Raises:
        Failure: the program is missing, took too long, or ended with a code other than 0; with
            the end of its output.
    """
    try:
        done = subprocess.run(
            [str(part) for part in command],
            env={**os.environ, **(env or {})},
            cwd=cwd,
            input=stdin or "",
            timeout=timeout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise Failure(f"the program {command[0]} is missing on this machine") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"{shown(command)} did not end within {timeout:.0f} s") from None
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-TAIL_LINES:])
        raise Failure(f"{shown(command)} ended with code {done.returncode}:\n{tail}")
    return done.stdout


def answer(*command: Argument, timeout: float = 60) -> str | None:
    """Return the standard output of a question that may fail: then, or too late, None."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            timeout=timeout,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            check=False,
        )
    except (FileNotFoundError, PermissionError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def works(*command: Argument, timeout: float = 60) -> bool:
    """Say whether a program is there and ends with code 0 in time."""
    return answer(*command, timeout=timeout) is not None


def found(program: str) -> bool:
    """Say whether a program is on the PATH."""
    return shutil.which(program) is not None


def shown(command: Sequence[Argument]) -> str:
    """Return a command as a line for people, cut after 160 characters."""
    text = " ".join(str(part) for part in command)
    return text if len(text) <= 160 else text[:157] + "…"
