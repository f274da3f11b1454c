"""The projects of the corpus, in folders and in packages."""

import os
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from lxml import etree

ROOT = Path(__file__).parents[2]
MAX_FILE = 4_000_000
"""Larger files are no data of a project."""

_NO_DATA: Final = frozenset({".png", ".gif", ".svg", ".zip", ".ipynb", ".md"})
_PROJECTS: Final = frozenset({"project", "engine"})
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)


def corpus_folder() -> Path | None:
    """Return where the corpus is; None: it is not here."""
    named = os.environ.get("ESPHA_CORPUS")
    folder = Path(named) if named else ROOT.parent / "shared" / "corpus"
    return folder if (folder / "README.md").is_file() else None


@dataclass(frozen=True)
class Sample:
    """One project.

    Attributes:
        name: its path in the corpus, without what says nothing (`model.xml`).
        file: the XML, or the package that holds it.
        member: the XML's name in the package; empty: `file` is the XML.
        package: the package beside the XML that holds the same project, with its data.
    """

    name: str
    file: Path
    member: str = ""
    package: Path | None = None

    @cached_property
    def xml(self) -> bytes:
        """The text of the project."""
        if not self.member:
            return self.file.read_bytes()
        with zipfile.ZipFile(self.file) as package:
            return package.read(self.member)

    @cached_property
    def canonical(self) -> bytes:
        """The text without what two copies of one project may differ in."""
        tree = etree.fromstring(self.xml, _PARSER)
        for metadata in tree.findall("metadata"):
            tree.remove(metadata)
        for element in tree.iter():
            element.text, element.tail = (element.text or "").strip(), ""
        return etree.tostring(tree, method="c14n")

    def unpack(self, folder: Path) -> Path:
        """Lay out the project and its data in an empty folder; return the XML's path."""
        package = self.file if self.member else self.package
        if package is not None:
            # A package's files lie where `@ESP_PROJECT_HOME@` says: beside the folder `model`.
            with zipfile.ZipFile(package) as files:
                files.extractall(folder, [n for n in files.namelist() if _is_data(Path(n))])
        if not self.member:
            _copy(self.file.parent, folder)
        model = folder / ("model.xml" if self.member else self.file.name)
        model.write_bytes(self.xml)
        return model


def samples(corpus: Path) -> list[Sample]:
    """Return all projects; a package that equals the project beside it is one with it."""
    found = [
        Sample(_name(corpus, path), path) for path in sorted(corpus.rglob("*.xml")) if _is(path)
    ]
    for sample in _packaged(corpus):
        equal = [
            place
            for place, other in enumerate(found)
            if other.file.parent == sample.file.parent and other.canonical == sample.canonical
        ]
        if equal:
            found[equal[0]] = replace(found[equal[0]], package=sample.file)
        else:
            found.append(sample)
    return sorted(found, key=lambda sample: sample.name)


def _packaged(corpus: Path) -> Iterator[Sample]:
    for path in sorted(corpus.rglob("*.zip")):
        with zipfile.ZipFile(path) as package:
            for member in package.namelist():
                if member.endswith("model.xml"):
                    yield Sample(str(path.relative_to(corpus)), path, member)


def _name(corpus: Path, path: Path) -> str:
    name = str(path.relative_to(corpus))
    return name.removesuffix("/model.xml")


def _is(path: Path) -> bool:
    """Say whether an XML file is a project."""
    try:
        for _, element in etree.iterparse(str(path), events=("start",), no_network=True):
            return element.tag in _PROJECTS
    except etree.XMLSyntaxError:
        return False
    return False


def _is_data(path: Path) -> bool:
    return path.suffix not in _NO_DATA and path.name != "model.xml"


def _copy(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file() and _is_data(path) and path.stat().st_size <= MAX_FILE:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
