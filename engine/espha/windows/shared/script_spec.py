"""What the windows with a script share: reading `<code>`, `<use>` and `<copy>`."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from lxml import etree

from espha.model.files import UNREAD
from espha.model.project import Field, Part, Window
from espha.model.schema import read_schema
from espha.model.xml import attributes, boolean, only_child, text_of
from espha.windows.shared.library import (
    LANGUAGES,
    File,
    Language,
    Text,
    Texts,
    code_text,
    is_program,
)
from espha.windows.shared.spec import Reading, WindowType

_ALL: Final = "*"
_FROM: Final = re.compile(r"""\besp_\w+From\s*\(\s*["'](\w+)["']""")
"""A call of a function that takes a field by its name."""

_CALLING: Final = frozenset({"init", "require", "expand-parms", "process-blocks", "encode-binary"})
"""Attributes that say how a script is called; wherever a window has one."""

CODE_ATTRIBUTES: Final = frozenset({"language", "function", "func"}) | _CALLING
"""Attributes of a `<code>`, or of the window that has it in place of expressions."""


class Given(NamedTuple):
    """What a script gets from one of the windows that feed it.

    Attributes:
        window: name of that window.
        places: which of its fields, as places in its schema.
        names: what the script calls them.
    """

    window: str
    places: tuple[int, ...]
    names: tuple[str, ...]


class Code(Part):
    """A script.

    Attributes:
        language: what it is written in.
        text: the script.
        function: the function that is called for an event.
        inputs: what it gets, for each edge into the window.
        init: the function that is called before the first event; empty: none.
        settings: what `init` gets, by name; None: nothing.
        require: names of the modules that run before the script.
        modules: the modules that it can use.
        snippets: the snippets that it can call.
        expanded: the function gets each value as an argument, in place of a row.
        blocks: the function gets a list of rows.
        encoded: blobs go in and out as base64.
        functions: the function for the events of each input, where they differ.
        mas: it is an analytic module: parameters and results of its functions are fields.
        files: the files that it can open.
    """

    language: Language
    text: str
    function: str
    inputs: tuple[Given, ...]
    init: str = ""
    settings: tuple[tuple[str, str], ...] | None = None
    require: tuple[str, ...] = ()
    modules: Texts = ()
    snippets: Texts = ()
    expanded: bool = False
    blocks: bool = False
    encoded: bool = False
    functions: tuple[str, ...] = ()
    mas: bool = False
    files: tuple[File, ...] = ()


class ScriptWindow(Window):
    """A window whose events a script makes.

    Attributes:
        code: the script.
        copied: fields that keep the input's value when the script says nothing about them.
        outputs: what the script calls each field; empty: all by their names.
        heartbeat: the function that is called as time passes; empty: none.
        heartbeat_ms: how often.
    """

    code: Code
    copied: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    heartbeat: str = ""
    heartbeat_ms: int = 0


def read_code(
    reading: Reading,
    language: Language,
    function: str,
    given: Sequence[Given],
    holder: etree._Element | None = None,
) -> Code | None:
    """Read and check the `<code>` of a window.

    Args:
        reading: the window.
        language: what the script is written in.
        function: name of the function to call.
        given: what the script gets, for each edge.
        holder: the element that has the code and says how it is called; by default the window.
    """
    findings = reading.findings
    element = reading.element if holder is None else holder
    text = code_text(element, findings)
    if text is None:
        return None
    init = element.get("init", "").strip()
    code = element.find("code")
    functions = [name for name in (function, init) if name]
    library = reading.library
    modules = library.modules.get(language, ())
    names = [module.name for module in modules]
    if code is None or not (
        code.get(UNREAD)
        or is_program(code, language, text, findings, functions=functions, modules=names)
    ):
        return None
    return Code(
        language=language,
        text=text,
        function=function,
        inputs=tuple(given),
        init=init,
        require=_required(element, language, modules, reading),
        modules=modules,
        snippets=tuple(Text(*each) for each in library.texts(language)),
        files=library.named_in(text),
        expanded=boolean(element, "expand-parms", findings),
        blocks=boolean(element, "process-blocks", findings),
        encoded=boolean(element, "encode-binary", findings),
    )


def _required(
    element: etree._Element, language: Language, modules: Texts, reading: Reading
) -> tuple[str, ...]:
    known = {module.name for module in modules}
    names = tuple(name for name in re.split(r"[,\s]+", element.get("require", "")) if name)
    for name in names:
        if name not in known:
            reason = f"there is no <{language}-module> called {name!r}"
            reading.findings.refuse(element, reason)
    return names


def given_fields(reading: Reading) -> tuple[Given, ...]:
    """Return what `<use>` lets a script have of each input; all fields when there is none.

    A function that parses a field by its name needs no `<use>` of it.
    """
    known = {field.name for feed in reading.feeds for field in feed.fields}
    used = _names(reading, "use", known)
    parsed = {
        name for code in reading.element.iter("code") for name in _FROM.findall(text_of(code))
    }
    names = known if used is None else {*used, *(parsed & known)}
    return tuple(
        given(feed.path, feed.fields, {name: name for name in names}) for feed in reading.feeds
    )


def given(path: str, fields: Sequence[Field], names: dict[str, str]) -> Given:
    """Return the fields of one input that a script gets.

    Args:
        path: of the window that feeds.
        fields: its schema.
        names: what the script calls a field, by the field's name; others are left out.
    """
    chosen = [place for place, field in enumerate(fields) if field.name in names]
    return Given(
        path.rpartition("/")[2],
        tuple(chosen),
        tuple(names[fields[place].name] for place in chosen),
    )


def heartbeat_ms(reading: Reading) -> int:
    """Return how often functions are called as time passes: the project's interval, in ms."""
    project = next(reading.element.iterancestors("project"), reading.element)
    text = project.get("heartbeat-interval", "1").strip()
    try:
        return max(1, int(float(text) * 1000))
    except (ValueError, OverflowError):
        reading.refuse(f"heartbeat-interval {text!r} of the project is no number of seconds")
        return 1000


def read_own_code(reading: Reading, function: str) -> Code | None:
    """Read the `<code>` of a window that can have one in place of expressions.

    `language` says whether it is `lua` (if nothing is said) or `python`, `function` or `func`
    which function to call; both can stand at the window or at its `<code>`.
    """
    element = only_child(reading.element, "code", reading.findings)
    holders = [reading.element] if element is None else [element, reading.element]
    if element is not None:
        attributes(element, CODE_ATTRIBUTES, reading.findings)
    language = _first(holders, ("language",), "lua").lower()
    if language not in LANGUAGES:
        reading.refuse(f"language {language!r} is not one of: {', '.join(LANGUAGES)}")
        return None
    name = _first(holders, ("function", "func"), function)
    return read_code(reading, language, name, given_fields(reading))


def _first(holders: Iterable[etree._Element], names: Iterable[str], default: str) -> str:
    """Return the first attribute of these names."""
    for holder in holders:
        for name in names:
            if name in holder.attrib:
                return holder.get(name, "").strip()
    return default


def read_script_window(reading: Reading, language: Language) -> dict[str, Any] | None:
    """Return the arguments of a window with a script; None when it has problems."""
    findings, element = reading.findings, reading.element
    before = len(findings.problems)
    fields = read_schema(element, findings)
    code = read_code(reading, language, element.get("events", "create"), given_fields(reading))
    if fields is None:
        return None
    copied = _names(reading, "copy", copyable(fields, reading)) or ()
    if len(findings.problems) > before:
        return None
    heartbeat = element.get("heartbeat", "").strip()
    return {
        **reading.common,
        "fields": fields,
        "code": code,
        "copied": copied,
        "heartbeat": heartbeat,
        "heartbeat_ms": heartbeat_ms(reading) if heartbeat else 0,
    }


def copyable(fields: Iterable[Field], reading: Reading) -> set[str]:
    """Names of the fields that are in the window and in an input, and everywhere of one type."""
    types = {
        name: {field.type for feed in reading.feeds for field in feed.fields if field.name == name}
        for name in (field.name for field in fields)
    }
    return {field.name for field in fields if types[field.name] == {field.type}}


def _names(reading: Reading, tag: str, known: set[str]) -> tuple[str, ...] | None:
    """Read a list of fields; None when the element is not there.

    `<use>a,b</use>` has these, `<use/>` and `<use>*</use>` have all that are `known`;
    `<use exclude="true">a,b</use>` and `<use exclude="a,b"/>` have all but these.
    """
    element, findings = only_child(reading.element, tag, reading.findings), reading.findings
    if element is None:
        return None
    attributes(element, frozenset({"exclude", "all"}), findings)
    named = _listed(text_of(element))
    word = element.get("exclude", "").strip()
    if word.lower() in {"true", "1"}:
        chosen, excluded = [], named
    else:
        chosen, excluded = named, [] if word.lower() in {"false", "0"} else _listed(word)
    if _ALL in chosen or boolean(element, "all", findings):
        chosen = []
    for name in sorted({*chosen, *excluded} - known):
        say = findings.refuse if name in chosen else findings.warn
        say(element, f"field {name!r} is missing, or does not have the same type in all inputs")
    return tuple(sorted((set(chosen) or known) - set(excluded)))


def _listed(text: str) -> list[str]:
    return [name for name in re.split(r"[,\s]+", text) if name]


def script_window(
    language: Language, read: Any, *, elements: frozenset[str] = frozenset()
) -> WindowType:
    """Return the type of the windows whose events a script in this language makes."""
    return WindowType(
        language,
        read,
        "computation",
        elements=frozenset({"schema", "schema-string", "code", "code-file", "use", "copy"})
        | elements,
        attributes=frozenset({"events", "heartbeat"}) | _CALLING,
        inputs=(1, None),
    )
