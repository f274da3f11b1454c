"""The virtual environment .venv, made of requirements.lock: `python -m tools.venv`."""

import shutil
import sys

from tools import ROOT
from tools.offline_cluster import cache, command
from tools.offline_cluster.say import program, step

VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / ".made-of"


def main() -> None:
    """Make .venv, or brings it up to the lock file; nothing to do takes no time."""
    key = cache.digest(LOCK, ROOT / "pyproject.toml", sys.version)
    with cache.lock("venv"):
        if STAMP.is_file() and STAMP.read_text() == key:
            return
        with step("making .venv of requirements.lock"):
            _make()
        # last, so that an interrupted run is done again
        STAMP.write_text(key)


def _make() -> None:
    python = VENV / "bin" / "python"
    if not command.works(python, "-m", "pip", "--version"):
        shutil.rmtree(VENV, ignore_errors=True)
        command.run(sys.executable, "-m", "venv", VENV)
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    command.run(*pip, "--require-hashes", "--requirement", LOCK)
    command.run(*pip, "--no-deps", "--editable", ROOT)


if __name__ == "__main__":
    program(main)
