"""The demo."""

from pathlib import Path


def run(folder: Path, *, keep: bool) -> int:
    """Run it."""
    raise NotImplementedError
