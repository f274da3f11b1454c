"""What the windows with a script share: reading `<code>`, `<use>` and `<copy>`."""

import textwrap
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, cast

from lxml import etree

from espha.model.project import Field, Part, Window
from espha.model.schema import read_schema
from espha.model.xml import attributes, only_child, text_of
from espha.scripts import ScriptError
from espha.scripts.lua import check_lua
from espha.scripts.python import check_python
from espha.windows.shared.spec import Feed, Reading

Language = Literal["lua", "python"]

CHECKS: dict[str, Callable[[str, str], None]] = {"lua": check_lua, "python": check_python}
"""What checks a script without running it."""


class Given(NamedTuple):
    """What a script gets from one of the windows that feed it.

    Attributes:
        window: name of that window.
        places: which of its fields, as places in its schema.
        names: their names.
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
    """

    language: Language
    text: str
    function: str
    inputs: tuple[Given, ...]


class ScriptWindow(Window):
    """A window whose events a script makes.

    Attributes:
        code: the script.
        copied: fields that keep the input's value when the script says nothing about them.
    """

    code: Code
    copied: tuple[str, ...] = ()


def read_code(
    reading: Reading, language: Language, function: str, *, use: tuple[str, ...] | None = None
) -> Code | None:
    """Read and check the `<code>` of a window.

    Args:
        reading: the window.
        language: what the script is written in.
        function: name of the function to call.
        use: names of the fields that the script gets; None: all.
    """
    findings = reading.findings
    for element in reading.element.findall("code-file"):
        findings.refuse(element, "a model is one file; put the script into <code>")
    code = only_child(reading.element, "code", findings)
    if code is None:
        reading.refuse(f"needs a <code> with a function {function!r}")
        return None
    text = textwrap.dedent("".join(str(part) for part in code.itertext()))
    try:
        CHECKS[language](text, function)
    except ScriptError as error:
        findings.refuse(code, str(error))
        return None
    inputs = tuple(_given(feed, use) for feed in reading.feeds)
    return Code(language=language, text=text, function=function, inputs=inputs)


def _given(feed: Feed, use: tuple[str, ...] | None) -> Given:
    chosen = [
        (place, field.name)
        for place, field in enumerate(feed.fields)
        if use is None or field.name in use
    ]
    name = feed.path.rpartition("/")[2]
    return Given(name, tuple(place for place, _ in chosen), tuple(name for _, name in chosen))


def read_own_code(reading: Reading, function: str) -> Code | None:
    """Read the `<code>` of a window that can have one in place of expressions.

    `language` says whether it is `lua` (if nothing is said) or `python`, `function` which function
    to call.
    """
    element = only_child(reading.element, "code", reading.findings)
    language = "lua" if element is None else element.get("language", "lua").strip().lower()
    if element is not None:
        attributes(element, frozenset({"language", "function"}), reading.findings)
        function = element.get("function", function)
    if language not in CHECKS:
        known = ", ".join(CHECKS)
        reading.refuse(f"language {language!r} is not one of: {known}")
        return None
    return read_code(reading, cast(Language, language), function)


def read_script_window(reading: Reading, language: Language) -> dict[str, object] | None:
    """Return the arguments of a window with a script; None when it has problems."""
    findings, element = reading.findings, reading.element
    before = len(findings.problems)
    fields = read_schema(element, findings)
    used = _names(reading, "use", {field.name for feed in reading.feeds for field in feed.fields})
    code = read_code(reading, language, element.get("events", "create"), use=used)
    if fields is None:
        return None
    copied = _names(reading, "copy", _copyable(fields, reading)) or ()
    if len(findings.problems) > before:
        return None
    return {**reading.common, "fields": fields, "code": code, "copied": copied}


def _copyable(fields: Iterable[Field], reading: Reading) -> set[str]:
    """Names of the fields that are in the window and in all inputs, with one type."""
    inputs = [{(field.name, field.type) for field in feed.fields} for feed in reading.feeds]
    return {
        field.name for field in fields if all((field.name, field.type) in known for known in inputs)
    }


def _names(reading: Reading, tag: str, known: set[str]) -> tuple[str, ...] | None:
    """Read `<use>a,b</use>`, or all but some of `known` from `<use exclude="a"/>`."""
    element = only_child(reading.element, tag, reading.findings)
    if element is None:
        return None
    attributes(element, frozenset({"exclude"}), reading.findings)
    chosen = _listed(text_of(element), element, known, reading)
    excluded = _listed(element.get("exclude", ""), element, known, reading)
    return tuple(sorted((set(chosen) or known) - set(excluded)))


def _listed(text: str, element: etree._Element, known: set[str], reading: Reading) -> list[str]:
    names = [name for part in text.split(",") if (name := part.strip())]
    for name in names:
        if name not in known:
            reason = f"field {name!r} is missing, or does not have the same type in all inputs"
            reading.findings.refuse(element, reason)
    return names
