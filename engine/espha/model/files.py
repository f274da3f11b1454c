"""Files beside a model that are part of it: they are put into its XML, so it stays one text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lxml import etree

from espha.model.problems import Findings
from espha.model.xml import IGNORED, text_of

MAX_FILE: Final = 400_000
"""Bytes of one file; the text of a script is bounded further."""

UNREAD: Final = "unread"
"""Attribute of a `<code>` whose file is not at hand; possible only while a model is checked."""


def home(tokens: Mapping[str, str] | None) -> Path | None:
    """Return the folder of the project, which only a token from outside can name."""
    found = (tokens or {}).get("ESP_PROJECT_HOME")
    return Path(found) if found else None


def put_in_files(
    project: etree._Element, folder: Path | None, findings: Findings, *, checking: bool = False
) -> None:
    """Replace what names a file with a script by the text of the file, in place.

    `<code-file>a.lua</code-file>` becomes `<code>` with its text; `<plugin code="a.lua">` gets such
    a `<code>`, and keeps its attribute, whose ending says the language.

    Args:
        project: the element; its tokens have been replaced.
        folder: what paths are relative to; None: there are no files here.
        findings: where problems go.
        checking: the model is not going to run: a file that is not there is a warning.
    """
    for element in list(project.iter("code-file", "plugin")):
        if any(parent.tag in IGNORED for parent in element.iterancestors()):
            continue
        path = text_of(element) if element.tag == "code-file" else element.get("code", "").strip()
        if not path or element.find("code") is not None:
            continue
        try:
            text, unread = _text(path, folder), False
        except (OSError, ValueError) as error:
            text, unread = "", True
            why = f"the file {path!r} is not read: {_reason(error)}"
            (findings.warn if checking else findings.refuse)(element, why)
        _put(element, text, unread)


def _put(element: etree._Element, text: str, unread: bool) -> None:
    if element.tag == "code-file":
        element.tag = "code"
        code = element
    else:
        code = etree.SubElement(element, "code")
        code.sourceline = element.sourceline
    code.text = text
    if unread:
        code.set(UNREAD, "true")


def _text(path: str, folder: Path | None) -> str:
    """Read a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it cannot be part of a model; the text says why.
    """
    if folder is None:
        raise ValueError("only the model itself is here; put the script into <code>")
    file = folder / path
    if not file.is_file():
        raise ValueError(f"there is no such file below {folder}")
    with file.open("rb") as stream:
        content = stream.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise ValueError(f"it has more than {MAX_FILE} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
