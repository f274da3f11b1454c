"""The place for everything that costs minutes: outside the checkout, keyed by its ingredients."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


def directory() -> Path:
    """Return the cache directory: $ESPHA_CACHE, else espha in the user's cache directory."""
    chosen = os.environ.get("ESPHA_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(chosen) if chosen else Path(home) / "espha"
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def digest(*ingredients: str | bytes | Path) -> str:
    """Return 16 hex digits over texts and files; a directory counts with all of its files.

    The names of the files inside a directory count, where the directory lies does not.
    """
    total = hashlib.sha256()
    for ingredient in ingredients:
        for name, content in _parts(ingredient):
            for part in (name.encode(), content):
                total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()[:16]


def _parts(ingredient: str | bytes | Path) -> Iterable[tuple[str, bytes]]:
    if isinstance(ingredient, str):
        return [("", ingredient.encode())]
    if isinstance(ingredient, bytes):
        return [("", ingredient)]
    if ingredient.is_file():
        return [(ingredient.name, ingredient.read_bytes())]
    return [
        (str(path.relative_to(ingredient)), path.read_bytes())
        for path in sorted(ingredient.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the machine-wide lock `name`; a second holder waits."""
    with (directory() / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def once(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """Return the directory `name-key`, and have it built first if it is not there.

    `build` fills a fresh directory that gets its name only when it is complete, so an
    interrupted build leaves nothing that looks finished. Directories of the same name with
    another key are removed: they are made of what is no more.
    """
    finished = directory() / f"{name}-{key}"
    with lock(name):
        if not finished.is_dir():
            with scratch() as path:
                build(path)
                path.chmod(0o755)
                path.rename(finished)
        for other in directory().glob(f"{name}-" + "[0-9a-f]" * len(key)):
            if other != finished:
                shutil.rmtree(other)
    return finished


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Give an empty directory on the cache's disk and remove what is left of it."""
    path = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=directory()))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
