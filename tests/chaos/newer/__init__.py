"""An espha that computes something else than this one; `sitecustomize` says what."""

from pathlib import Path

from chaos.here import customized

SEMANTICS = 99
MENDED = 555_000_001
"""A number to which this espha gives another meaning: it counts as one more."""


def environment() -> dict[str, str]:
    """Return what makes a process run the other espha."""
    return customized(Path(__file__).parent)
