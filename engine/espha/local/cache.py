"""The cache directory of this user: jars, and what is made of them once."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


def directory() -> Path:
    """Return the cache directory, made if need be.

    It is $ESPHA_CACHE, else `espha` in the user's cache directory.
    """
    chosen = os.environ.get("ESPHA_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(chosen) if chosen else Path(home) / "espha"
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def jars(profile: str) -> Path:
    """Return where the jars of `kafka`, `zookeeper` or `engine` are, once they are resolved."""
    return directory() / "jars" / profile


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the machine-wide lock `name`; a second holder waits."""
    with (directory() / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Give an empty directory on the cache's disk, and remove what is left of it."""
    path = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=directory()))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
