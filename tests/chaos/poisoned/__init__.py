"""Rows on which the kernel of an engine dies; `sitecustomize` says how."""

from pathlib import Path

from chaos.here import customized

RAISES, HANGS, EATS, EXITS, SPINS = range(666_000_001, 666_000_006)
"""Numbers that make an event poison: what comes of one."""


def environment() -> dict[str, str]:
    """Return what makes some rows poison in a process."""
    return customized(Path(__file__).parent)
