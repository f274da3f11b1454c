"""What the scripts of a project share: modules and snippets, defined at project level."""

import base64
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from lxml import etree

from espha.model.files import FILES
from espha.model.problems import Findings
from espha.model.project import Part
from espha.model.xml import attributes, children, only_child, text_of
from espha.scripts import ScriptError
from espha.scripts.lua import check_lua, unknown_functions
from espha.scripts.python import check_python
from espha.windows.shared.intervals import interval_ms

Language = Literal["lua", "python"]
LANGUAGES: Final[tuple[Language, ...]] = ("lua", "python")

_CHECKS: Final[Mapping[Language, Callable[..., None]]] = {"lua": check_lua, "python": check_python}


class Text(NamedTuple):
    """A text with a name: a module or a snippet."""

    name: str
    text: str


Texts = tuple[Text, ...]


class File(NamedTuple):
    """A file that came with the model.

    Attributes:
        name: as scripts call it.
        base64: its bytes.
    """

    name: str
    base64: str

    def content(self) -> bytes:
        """Return its bytes."""
        return base64.b64decode(self.base64)


class Thread(NamedTuple):
    """A function of a snippet that is called again and again, until it returns true."""

    function: str
    every_ms: int


class Snippet(Part):
    """A script of the project that belongs to no window.

    Attributes:
        language: what it is written in.
        name: its name.
        text: the script.
        init: the function that is called before the first event; empty: none.
        threads: functions that are called again and again.
        modules: the modules that it can use.
        files: the files that it can open.
    """

    language: Language
    name: str
    text: str
    init: str = ""
    threads: tuple[Thread, ...] = ()
    modules: Texts = ()
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class Library:
    """What all scripts of a project can use.

    Attributes:
        modules: of each language, in the order of the XML.
        snippets: in the order of the XML.
        files: by name.
        mas: elements of the modules of SAS Micro Analytic Service, by name.
    """

    modules: Mapping[Language, Texts] = field(default_factory=dict)
    snippets: tuple[Snippet, ...] = ()
    files: tuple[File, ...] = ()
    mas: Mapping[str, etree._Element] = field(default_factory=dict)

    def texts(self, language: Language) -> Texts:
        """Return the texts of the snippets of a language."""
        return tuple(Text(one.name, one.text) for one in self.snippets if one.language == language)

    def named_in(self, text: str) -> tuple[File, ...]:
        """Return the files that a script names."""
        return tuple(file for file in self.files if file.name in text)


LIBRARY_ELEMENTS: Final = frozenset(
    {f"{language}-{kind}s" for language in LANGUAGES for kind in ("module", "snippet")}
    | {FILES, "mas-modules"}
)
"""The elements of a project that `read_library` reads."""


def read_library(project: etree._Element, findings: Findings) -> Library:
    """Read the modules, snippets and files of a project."""
    files = tuple(
        File(element.get("name", ""), text_of(element))
        for element in project.findall(f"{FILES}/file")
    )
    modules: dict[Language, Texts] = {
        language: tuple(text for _, text in _texts(project, language, "module", findings))
        for language in LANGUAGES
    }
    library = Library(modules, (), files, _mas_modules(project, findings))
    snippets = tuple(
        _snippet(element, language, text, library, findings)
        for language in LANGUAGES
        for element, text in _texts(project, language, "snippet", findings)
    )
    return replace(library, snippets=snippets)


def _snippet(
    element: etree._Element,
    language: Language,
    text: Text,
    library: Library,
    findings: Findings,
) -> Snippet:
    return Snippet(
        language=language,
        name=text.name,
        text=text.text,
        init=element.get("init", "").strip(),
        threads=tuple(
            Thread(thread.get("func", "").strip(), _interval(thread, findings))
            for thread in element.findall(f"{language}-thread")
        ),
        modules=library.modules.get(language, ()),
        files=library.named_in(text.text),
    )


def _interval(thread: etree._Element, findings: Findings) -> int:
    """Return how often a function is called, in ms; 0: once."""
    text = thread.get("interval", "").strip()
    if not text:
        return 0
    try:
        return interval_ms(text)
    except ValueError as error:
        findings.refuse(thread, f"interval is {error}")
        return 0


def _mas_modules(project: etree._Element, findings: Findings) -> dict[str, etree._Element]:
    """Return the elements of the modules; windows read those that they use."""
    found: dict[str, etree._Element] = {}
    for block in project.findall("mas-modules"):
        for element in children(block, frozenset({"mas-module"}), findings):
            name = element.get("module", "").strip()
            if not name or name in found:
                findings.refuse(element, "a module needs a name of its own")
            found[name] = element
    return found


def _texts(
    project: etree._Element, language: Language, kind: str, findings: Findings
) -> Iterator[tuple[etree._Element, Text]]:
    known = frozenset({"code", f"{language}-thread"})
    seen: set[str] = set()
    modules = {str(each.get("name", "")).strip() for each in project.iter(f"{language}-module")}
    for block in project.findall(f"{language}-{kind}s"):
        for element in children(block, frozenset({f"{language}-{kind}"}), findings):
            attributes(element, frozenset({"name", "init", "destroy"}), findings)
            list(children(element, known, findings))
            name = element.get("name", "").strip()
            if not name or name in seen:
                findings.refuse(element, f"a {kind} needs a name of its own")
                continue
            seen.add(name)
            text = code_text(element, findings)
            if text is not None and is_program(
                element, language, text, findings, functions=_functions(element), modules=modules
            ):
                yield element, Text(name, text)


def _functions(element: etree._Element) -> list[str]:
    """Return the functions that a snippet must have."""
    named = [element.get("init", ""), *(thread.get("func", "") for thread in element.iter())]
    return [name.strip() for name in named if name.strip()]


def code_text(element: etree._Element, findings: Findings) -> str | None:
    """Return the text of the `<code>` of an element; None, reported, when it has none."""
    code = only_child(element, "code", findings)
    if code is None:
        findings.refuse(element, "needs a <code>")
        return None
    return textwrap.dedent("".join(str(part) for part in code.itertext()))


def is_program(
    element: etree._Element,
    language: Language,
    text: str,
    findings: Findings,
    *,
    functions: Iterable[str] = (),
    modules: Collection[str] = (),
) -> bool:
    """Say whether a text is a program with these functions; refuse the element when it is not."""
    try:
        _CHECKS[language](text, *functions, modules=modules)
    except ScriptError as error:
        findings.refuse(element, str(error))
        return False
    for name in unknown_functions(text) if language == "lua" else ():
        findings.warn(element, f"{name}() is not there; what calls it fails")
    return True


def defines(language: Language, text: str, function: str) -> bool:
    """Say whether a program has a function of this name."""
    try:
        _CHECKS[language](text, function)
    except ScriptError:
        return False
    return True
