"""Files beside a model that are part of it: they are put into its XML, so it stays one text."""

import base64
import contextlib
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lxml import etree

from espha.model.problems import Findings
from espha.model.xml import IGNORED, text_of

MAX_FILE: Final = 400_000
"""Bytes of one file; the text of a script is bounded further."""

LISTS: Final = frozenset({"wordVec", "startList", "stopList"})
"""Properties of algorithms that name a file."""

INLINE: Final = "inline"
"""Attribute of a property with the text of a file in the place of its name."""

FILES: Final = "script-files"
"""Element of a project that holds the files that its scripts open."""

_OPENED: Final = re.compile(r"""\b(?:open|lines)\s*\(\s*["']([^"'\n]+)["']""")

UNREAD: Final = "unread"
"""Attribute of a `<code>` whose file is not at hand; possible only while a model is checked."""


def home(tokens: Mapping[str, str] | None) -> Path | None:
    """Return the folder of the project, which only a token from outside can name."""
    found = (tokens or {}).get("ESP_PROJECT_HOME")
    return Path(found) if found else None


def put_in_files(
    project: etree._Element, folder: Path | None, findings: Findings, *, checking: bool = False
) -> None:
    """Replace what names a file by the text of the file, in place.

    `<code-file>a.lua</code-file>` becomes `<code>` with its text; `<plugin code="a.lua">` gets such
    a `<code>`, and keeps its attribute, whose ending says the language. A `<property>` of an
    algorithm that names a list of words gets the list, and the attribute `inline`. Files that
    scripts open by a constant name are added to the project.

    Args:
        project: the element; its tokens have been replaced.
        folder: what paths are relative to; None: there are no files here.
        findings: where problems go.
        checking: the model is not going to run: a file that is not there is a warning.
    """
    _put_in_named(project, folder, findings, checking)
    if folder is not None:
        _put_in_opened(project, folder)


def _put_in_named(
    project: etree._Element, folder: Path | None, findings: Findings, checking: bool
) -> None:
    for element in list(project.iter("code-file", "plugin", "property")):
        if any(parent.tag in IGNORED for parent in element.iterancestors()):
            continue
        path = _path(element)
        if not path:
            continue
        try:
            text, unread = _text(path, folder), False
        except (OSError, ValueError) as error:
            text, unread = "", True
            why = f"the file {path!r} is not read: {_reason(error)}"
            (findings.warn if checking else findings.refuse)(element, why)
        _put(element, text, unread)


def _path(element: etree._Element) -> str:
    """Return the path of the file that an element names; empty: it names none."""
    if element.tag == "code-file":
        return text_of(element)
    if element.tag == "plugin":
        return "" if element.find("code") is not None else element.get("code", "").strip()
    of_algorithm = element.xpath("boolean(ancestor::parameters)")
    is_list = of_algorithm and element.get("name") in LISTS and INLINE not in element.attrib
    return text_of(element) if is_list else ""


def _put_in_opened(project: etree._Element, folder: Path) -> None:
    """Add the files that scripts open by their names, as far as they are there."""
    names = {
        name
        for element in project.iter("code")
        if not any(parent.tag in IGNORED for parent in element.iterancestors())
        for name in _OPENED.findall(text_of(element))
    }
    block = etree.SubElement(project, FILES)
    for name in sorted(names):
        try:
            content = _bytes(name, folder)
        except (OSError, ValueError):
            continue
        entry = etree.SubElement(block, "file", {"name": name})
        entry.text = base64.b64encode(content).decode()
    if not len(block):
        project.remove(block)


def _put(element: etree._Element, text: str, unread: bool) -> None:
    if element.tag == "property":
        if not unread:
            element.text = text
            element.set(INLINE, "true")
        return
    if element.tag == "code-file":
        element.tag = "code"
        code = element
    else:
        code = etree.SubElement(element, "code")
        code.sourceline = element.sourceline
    code.text = text
    if unread:
        code.set(UNREAD, "true")


_HERE: Final = f'into the <property {INLINE}="true">'


def _text(path: str, folder: Path | None) -> str:
    """Read a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it cannot be part of a model; the text says why.
    """
    if folder is None:
        raise ValueError(f"only the model itself is here; put the text into <code>, or {_HERE}")
    try:
        text = _bytes(path, folder).decode()
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    try:
        etree.Element("text").text = text
    except ValueError:
        raise ValueError("it has control characters, which XML cannot have") from None
    return text


def _bytes(path: str, folder: Path) -> bytes:
    """Read a file; see `_text`."""
    file = folder / path
    if file.is_file():
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE + 1)
    else:
        content = _packaged(file, folder)
    if len(content) > MAX_FILE:
        raise ValueError(f"it has more than {MAX_FILE} bytes")
    return content


def _packaged(file: Path, folder: Path) -> bytes:
    """Read a file of the project package, a zip beside the model.

    Raises:
        ValueError: there is no such file; the text says so.
    """
    if file.is_relative_to(folder):
        wanted = file.relative_to(folder).as_posix()
        for package in sorted(folder.glob("*.zip")):
            with (
                contextlib.suppress(zipfile.BadZipFile, RuntimeError),
                zipfile.ZipFile(package) as opened,
            ):
                for name in opened.namelist():
                    if f"/{name}".endswith(f"/{wanted}"):
                        with opened.open(name) as stream:
                            return stream.read(MAX_FILE + 1)
    raise ValueError(f"there is no such file below {folder}")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
