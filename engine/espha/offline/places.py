"""Where the files of a model are: its folders, and what its tokens and paths mean here."""

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from espha.model.tokens import TOKEN, named_tokens

_MOST_FILES: Final = 5_000
"""Files that are looked at for one that is not where the model says."""

_DEPTH: Final = 3


class Found(NamedTuple):
    """A file, and a sentence when it is not where the model says; empty: it is."""

    path: Path
    note: str = ""


class Places:
    """The folders of a model.

    Attributes:
        folder: where the XML lies; relative names begin there.
        home: the folder of the project; in a package of SAS ESP Studio, the one above `model`.
    """

    def __init__(self, model: Path) -> None:
        self.folder = model.absolute().parent
        packed = self.folder.name == "model" and self.folder.parent != self.folder
        self.home = self.folder.parent if packed else self.folder

    def tokens(self) -> dict[str, str]:
        """Return the tokens that stand for folders."""
        home = str(self.home)
        return {
            "ESP_PROJECT_HOME": home,
            "ESP_PROJECT_OUTPUT": str(self.home / "output"),
            "PROJDIR": home,
            "CONFIGDIR": home,
        }

    def source(self, name: str) -> Found:
        """Say where a file is that is read.

        A file that is not where its path says is looked for by its name, in the project: paths
        often are those of another machine.
        """
        path = self._path(name)
        if not TOKEN.search(name):
            for folder in (self.folder, self.home, Path.cwd()):
                if (folder / path).exists():
                    return Found(folder / path)
        for found in self._alike(path.name):
            return Found(found, f"{name} is not here: {found} is read instead")
        return Found(self.folder / path)

    def target(self, name: str) -> Found:
        """Say where a file goes that is written; a folder of another machine becomes `output`."""
        path = self.folder / self._path(name)
        inside = path.is_relative_to(self.home)
        if not TOKEN.search(name) and (inside or path.parent.is_dir()):
            return Found(path)
        instead = self.home / "output" / path.name
        return Found(instead, f"the folder of {name} is not here: {instead} is written instead")

    def _path(self, name: str) -> Path:
        plain = name.strip()
        if plain.lower().startswith("file:"):
            plain = plain[5:].removeprefix("//")
        return Path(os.path.expandvars(plain).replace("\\", "/"))

    def _alike(self, name: str) -> Iterator[Path]:
        """Yield files of this name, those of the exact name and the shortest way first."""
        if not name or TOKEN.search(name):
            return
        files = list(islice(_below(self.home, _DEPTH), _MOST_FILES))
        near = [path for path in files if path.name.lower() == name.lower()]
        yield from sorted(near, key=lambda path: (path.name != name, len(path.parts), str(path)))


def _below(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    yield from (path for path in entries if path.is_file())
    for path in entries:
        hidden = path.name.startswith(".") or path.name == "output"
        if depth and path.is_dir() and not hidden and not path.is_symlink():
            yield from _below(path, depth - 1)


def environment(xml: bytes, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of the environment that a model names as tokens."""
    text = xml.decode("utf-8", "replace")
    return named_tokens(text, os.environ if variables is None else variables)
