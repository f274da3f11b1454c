"""An espha that computes something else than this one; `sitecustomize` says what."""

import os
from pathlib import Path

from chaos.here import ENVIRONMENT

SEMANTICS = 99
MENDED = 555_000_001
"""A number to which this espha gives another meaning: it counts as one more."""


def environment() -> dict[str, str]:
    """Return what makes a process run the other espha."""
    return {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), ENVIRONMENT["PYTHONPATH"]])}
