"""Custom windows: a script in a file, with maps from its variables to the fields."""

import re
from collections.abc import Collection
from typing import Final, Literal

from lxml import etree

from espha.model.project import Field
from espha.model.schema import read_schema
from espha.model.xml import attributes, children, only_child, properties
from espha.windows.shared.library import LANGUAGES, Language, defines
from espha.windows.shared.script_spec import (
    Code,
    Given,
    ScriptWindow,
    copyable,
    given,
    heartbeat_ms,
    read_code,
)
from espha.windows.shared.spec import Reading, WindowType

_ENDINGS: Final[dict[str, Language]] = {"lua": "lua", "py": "python"}
_PARTS: Final = frozenset({"input-map", "output-map", "initialization", "code"})


class CustomWindow(ScriptWindow):
    """Its events are made by a function of a script that does not know the names of the fields."""

    type: Literal["custom"] = "custom"


def _read(reading: Reading) -> CustomWindow | None:
    findings, element = reading.findings, reading.element
    before = len(findings.problems)
    fields = read_schema(element, findings)
    plugin = only_child(element, "plugin", findings)
    if plugin is None:
        reading.refuse("needs a <plugin> with the script")
        return None
    attributes(plugin, frozenset({"code", "language"}), findings)
    list(children(plugin, _PARTS, findings))
    code = _code(reading, plugin)
    outputs = _map(plugin, "output-map", reading)
    if fields is None or code is None or len(findings.problems) > before:
        return None
    _check_outputs(plugin, fields, outputs, reading)
    names = {field: name for name, field in reversed(outputs.items())}
    beats = defines(code.language, code.text, "heartbeat")
    return CustomWindow(
        **reading.common,
        fields=fields,
        code=code,
        copied=tuple(sorted(copyable(fields, reading) - set(names))),
        outputs=tuple(names.get(field.name, field.name) for field in fields),
        heartbeat="heartbeat" if beats else "",
        heartbeat_ms=heartbeat_ms(reading) if beats else 0,
    )


def _code(reading: Reading, plugin: etree._Element) -> Code | None:
    language = _language(plugin, reading)
    if language is None:
        return None
    code = read_code(reading, language, "create", _given(reading, plugin), plugin)
    if code is None:
        return None
    settings = properties(plugin.find("initialization"), reading.findings)
    return code.model_copy(
        update={
            "init": "init" if defines(language, code.text, "init") else "",
            "settings": tuple(settings.items()),
            "expanded": code.expanded or _set(code.text, "expand_parms"),
            "blocks": code.blocks or _set(code.text, "process_blocks"),
            "encoded": code.encoded or _set(code.text, "encode_binary"),
        }
    )


def _language(plugin: etree._Element, reading: Reading) -> Language | None:
    ending = plugin.get("code", "").strip().lower().rpartition(".")[2]
    language = plugin.get("language", _ENDINGS.get(ending, "")).strip().lower()
    for known in LANGUAGES:
        if language == known:
            return known
    reading.findings.refuse(plugin, "code is to name a file that ends with .lua or .py")
    return None


def _set(text: str, name: str) -> bool:
    """Say whether the script's own description sets a flag; the last word counts."""
    found = re.findall(rf"\b{name}[\"']?\s*[=:]\s*(\w+)", text)
    return bool(found) and found[-1].lower() == "true"


def _map(plugin: etree._Element, tag: str, reading: Reading) -> dict[str, str]:
    """Return what the script's variables stand for; those without a field are left out."""
    found = properties(only_child(plugin, tag, reading.findings), reading.findings)
    return {name: field for name, field in found.items() if field}


def _given(reading: Reading, plugin: etree._Element) -> tuple[Given, ...]:
    """Return what the script gets, in the order of the map; without a map, all fields."""
    inputs = _map(plugin, "input-map", reading)
    known = {field.name for feed in reading.feeds for field in feed.fields}
    if not inputs:
        return tuple(
            given(feed.path, feed.fields, {name: name for name in known}) for feed in reading.feeds
        )
    for name in sorted(set(inputs.values()) - known):
        reading.findings.refuse(plugin, f"<input-map>: there is no field {name!r} in the input")
    return tuple(_mapped(feed.path, feed.fields, inputs) for feed in reading.feeds)


def _mapped(path: str, fields: Collection[Field], inputs: dict[str, str]) -> Given:
    places = {field.name: place for place, field in enumerate(fields)}
    chosen = [(name, places[field]) for name, field in inputs.items() if field in places]
    return Given(
        path.rpartition("/")[2],
        tuple(place for _, place in chosen),
        tuple(name for name, _ in chosen),
    )


def _check_outputs(
    plugin: etree._Element, fields: Collection[Field], outputs: dict[str, str], reading: Reading
) -> None:
    known = {field.name for field in fields}
    for name in sorted(set(outputs.values()) - known):
        reading.findings.warn(plugin, f"<output-map>: there is no field {name!r} in the schema")


WINDOW = WindowType(
    "custom",
    _read,
    "computation",
    elements=frozenset({"schema", "schema-string", "plugin"}),
    attributes=frozenset({"type", "version"}),
    inputs=(1, None),
)
