"""Modules of SAS Micro Analytic Service in Python: where they are defined, how a window maps them.

`<mas-modules>` of a project has the modules; a `<mas-map>` says which function of which module gets
the events of which input. The parameters of a function are names of fields, the first line of its
text names its results: `Output: a, b`.
"""

import ast
import textwrap
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from lxml import etree

from espha.model.files import UNREAD
from espha.model.problems import Findings
from espha.model.project import Field
from espha.model.schema import read_schema
from espha.model.xml import attributes, children, only_child
from espha.scripts import ScriptError
from espha.scripts.process.values import output_names
from espha.scripts.python import check_python
from espha.windows.shared.script_spec import Code, ScriptWindow, given
from espha.windows.shared.spec import Feed, Reading

SPECIAL: Final = frozenset({"_inOpcode", "_inFlags"})
"""Parameters of a function that are no fields."""

_ATTRIBUTES: Final = frozenset(
    {"language", "module", "func-names", "mas-store", "mas-store-version", "revision"}
)
_ELEMENTS: Final = frozenset({"code", "code-file", "module-members"})
_MAP_ATTRIBUTES: Final = frozenset({"module", "source", "revision", "function"})


class Function(NamedTuple):
    """What the text of a function says.

    Attributes:
        needed: parameters without a default.
        outputs: names of its results.
    """

    needed: tuple[str, ...]
    outputs: tuple[str, ...]


class _Mapped(NamedTuple):
    element: etree._Element
    module: str
    function: str


class ProceduralWindow(ScriptWindow):
    """Its events are made by functions of analytic modules.

    Attributes:
        more: the modules after the first one.
    """

    type: Literal["procedural"] = "procedural"
    more: tuple[Code, ...] = ()


def read_mapped(reading: Reading) -> ProceduralWindow | None:
    """Read a window with a `<mas-map>`; None, reported, when it has problems."""
    findings, element = reading.findings, reading.element
    before = len(findings.problems)
    fields = read_schema(element, findings)
    mapped = [_map_of(feed, _maps(reading), reading) for feed in reading.feeds]
    texts = {each.module: _module(each, reading) for each in mapped if each}
    outputs: set[str] = set()
    for feed, each in zip(reading.feeds, mapped, strict=True):
        text = texts[each.module] if each else None
        if each and text is not None:
            outputs |= _check(each, text, feed, findings)
    if fields is None or len(findings.problems) > before:
        return None
    known = set.intersection(*({field.name for field in feed.fields} for feed in reading.feeds))
    for field in fields:
        if field.key and field.name not in known | outputs:
            reading.refuse(f"key field {field.name!r} is no field of the input and no result")
            return None
    first, *more = [_code(name, text or "", mapped, reading.feeds) for name, text in texts.items()]
    return ProceduralWindow(**reading.common, fields=fields, code=first, more=tuple(more))


def _maps(reading: Reading) -> list[etree._Element]:
    holder = only_child(reading.element, "mas-map", reading.findings)
    if holder is None:
        return []
    return list(children(holder, frozenset({"window-map"}), reading.findings))


def _map_of(feed: Feed, maps: Sequence[etree._Element], reading: Reading) -> _Mapped | None:
    """Return what an input is mapped to; by the name of the window, or because there is one map."""
    name = feed.path.rpartition("/")[2]
    found = [each for each in maps if each.get("source", "").strip() in (name, feed.path)]
    if not found and len(maps) == 1 and not maps[0].get("source", "").strip():
        found = list(maps)
    if len(found) != 1:
        reading.refuse(f"needs a <mas-map> with one <window-map> for input {name!r}")
        return None
    (element,) = found
    attributes(element, _MAP_ATTRIBUTES, reading.findings)
    module = element.get("module", "").strip()
    defined = reading.library.mas.get(module)
    exported = "" if defined is None else defined.get("func-names", "").partition(",")[0]
    return _Mapped(element, module, (element.get("function") or exported).strip())


def _module(mapped: _Mapped, reading: Reading) -> str | None:
    """Return the text of a module; None, reported, when it cannot be run; empty: not at hand."""
    findings = reading.findings
    element = reading.library.mas.get(mapped.module)
    if element is None:
        known = ", ".join(reading.library.mas) or "none"
        findings.refuse(mapped.element, f"module {mapped.module!r} is not one of: {known}")
        return None
    attributes(element, _ATTRIBUTES, findings)
    language = element.get("language", "").strip().lower()
    if language != "python":
        reason = f"modules in {language or 'no language'} are not run; write it in Python"
        findings.refuse(element, f"module {mapped.module!r}: {reason}")
        return None
    list(children(element, _ELEMENTS, findings))
    code = only_child(element, "code", findings)
    if code is None:
        findings.refuse(element, "put the module into <code>; there is no store of modules here")
        return None
    if code.get(UNREAD):
        return ""
    text = textwrap.dedent("".join(str(part) for part in code.itertext()))
    try:
        check_python(text)
    except ScriptError as error:
        findings.refuse(code, str(error))
        return None
    return text


def _check(mapped: _Mapped, text: str, feed: Feed, findings: Findings) -> set[str]:
    """Check a function against the input; return the names of its results."""
    functions = functions_of(text)
    if not text:
        return set()
    function = functions.get(mapped.function)
    if function is None:
        known = ", ".join(functions) or "none"
        reason = f"function {mapped.function!r} is not one of those of the module: {known}"
        findings.refuse(mapped.element, reason)
        return set()
    there = {field.name for field in feed.fields} | SPECIAL
    for name in function.needed:
        if name not in there:
            findings.refuse(mapped.element, f"parameter {name!r} is no field of {feed.path}")
    if not function.outputs:
        reason = f'the first line of function {mapped.function!r} must be "Output: " and names'
        findings.refuse(mapped.element, reason)
    return set(function.outputs)


def functions_of(text: str) -> dict[str, Function]:
    """Return the functions of a module, by name."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
            needed = names[: len(names) - len(node.args.defaults)]
            found[node.name] = Function(tuple(needed), tuple(output_names(ast.get_docstring(node))))
    return found


def _code(module: str, text: str, mapped: Sequence[_Mapped | None], feeds: Sequence[Feed]) -> Code:
    functions = [each.function if each and each.module == module else "" for each in mapped]
    return Code(
        language="python",
        text=text,
        function=next(filter(None, functions), ""),
        inputs=tuple(given(feed.path, feed.fields, _own(feed.fields)) for feed in feeds),
        functions=tuple(functions),
        mas=True,
    )


def _own(fields: Sequence[Field]) -> dict[str, str]:
    return {field.name: field.name for field in fields}
