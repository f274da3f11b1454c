"""Where the campaign's own processes find this checkout."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

ENVIRONMENT = {
    **os.environ,
    # First, so that a copy of the checkout runs its own code and not the installed one's.
    "PYTHONPATH": os.pathsep.join(
        [str(ROOT / "engine"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    ),
}


def customized(folder: Path) -> dict[str, str]:
    """Return what makes a process run the `sitecustomize` of a folder first."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), ENVIRONMENT["PYTHONPATH"]])}


def commit() -> str:
    """Return the commit of this checkout, in short; `unknown` in a copy without git."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "unknown"
