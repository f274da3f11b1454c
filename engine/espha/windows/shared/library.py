"""What the scripts of a project share: modules and snippets, defined at project level."""

import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from lxml import etree

from espha.model.problems import Findings
from espha.model.xml import attributes, children, only_child
from espha.scripts import ScriptError
from espha.scripts.lua import check_lua
from espha.scripts.python import check_python

Language = Literal["lua", "python"]
LANGUAGES: Final[tuple[Language, ...]] = ("lua", "python")

_CHECKS: Final[Mapping[Language, Callable[..., None]]] = {"lua": check_lua, "python": check_python}


class Text(NamedTuple):
    """A text with a name: a module or a snippet."""

    name: str
    text: str


Texts = tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """What all scripts of a project can use.

    Attributes:
        modules: of each language, in the order of the XML.
        snippets: of each language, in the order of the XML.
        mas: elements of the modules of SAS Micro Analytic Service, by name.
    """

    modules: Mapping[Language, Texts] = field(default_factory=dict)
    snippets: Mapping[Language, Texts] = field(default_factory=dict)
    mas: Mapping[str, etree._Element] = field(default_factory=dict)


LIBRARY_ELEMENTS: Final = frozenset(
    {f"{language}-{kind}s" for language in LANGUAGES for kind in ("module", "snippet")}
    | {"mas-modules"}
)
"""The elements of a project that `read_library` reads."""


def read_library(project: etree._Element, findings: Findings) -> Library:
    """Read the modules and snippets of a project."""
    return Library(
        {language: tuple(_texts(project, language, "module", findings)) for language in LANGUAGES},
        {language: tuple(_texts(project, language, "snippet", findings)) for language in LANGUAGES},
        _mas_modules(project, findings),
    )


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
) -> Iterator[Text]:
    known = frozenset({"code", "lua-thread", "python-thread"})
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
            if text is not None and is_program(element, language, text, findings, modules=modules):
                yield Text(name, text)


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
    return True


def defines(language: Language, text: str, function: str) -> bool:
    """Say whether a program has a function of this name."""
    try:
        _CHECKS[language](text, function)
    except ScriptError:
        return False
    return True
