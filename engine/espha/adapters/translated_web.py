"""Properties of connectors of the web, of databases and of scripts, as settings of adapters."""

from collections.abc import Mapping
from typing import Any, Final

from espha.adapters.translated_streams import Task
from espha.connectors.connectors import open_tokens
from espha.connectors.databases import database_of
from espha.connectors.files import flag_property, whole_property
from espha.connectors.timers import interval

_POLL_S: Final = 60
_LATER: Final = "the adapter goes on; it has no end of its own"
_FORMATS: Final = {"": "json", "json": "json", "csv": "csv"}


def url_settings(task: Task) -> dict[str, Any]:
    """Return the settings of addresses that are asked at an interval."""
    task.check(frozenset({"configurl", "properties", "interval"}), {"maxevents": _LATER})
    every = _seconds(task)
    return {
        "configuration": _configuration(task, needed=True),
        **_tokens(task),
        **({"intervalS": every} if every else {}),
    }


def websocket_settings(task: Task) -> dict[str, Any]:
    """Return the settings of a WebSocket."""
    own = {"url", "configurl", "properties", "contenttype", "publishwithupsert"}
    task.check(frozenset(own), {})
    kind = task.text("contenttype").lower().rpartition("/")[2]
    if kind not in _FORMATS:
        task.found.refuse(f"contenttype {kind[:60]!r} cannot be followed; use json or csv")
    file = _configuration(task, needed=False)
    upsert = {"upsert": True} if flag_property(task.values, "publishwithupsert") else {}
    form = {"type": _FORMATS.get(kind, "json"), **upsert}
    return {
        "address": task.needed("url"),
        **({"configuration": file, **_tokens(task)} if file else {"format": form}),
    }


def script_settings(task: Task, language: str) -> dict[str, Any]:
    """Return the settings of a script, whose functions make events."""
    known = {"code", "publish", "init", "interval", "maxevents", "dateformat"}
    task.check(frozenset(known), {})
    every = interval(task.values.get("interval", ""))
    most = whole_property(task.values, "maxevents", 0)
    if not task.values.get("code", "").strip():
        task.found.refuse("property 'code' is missing: the script")
    told = {"publish": task.text("publish"), "dateFormat": task.text("dateformat")}
    told |= {"init": task.text("init")} if language == "python" else {}
    return {
        "language": language,
        "code": task.values.get("code", ""),
        **{name: text for name, text in told.items() if text},
        **({"intervalMs": every} if every else {}),
        **({"maxEvents": most} if most else {}),
    }


def database_place(connect: str, given: str = "") -> dict[str, str]:
    """Return where a table is, as our adapter has it; empty: that is not said.

    Args:
        connect: what a connector says (property connectstring).
        given: what is said beside it: an address of PostgreSQL, or a file of SQLite.
    """
    place = given or database_of(connect)
    if not place:
        return {}
    return {"url" if place.startswith("postgresql:") else "path": place}


def _configuration(task: Task, *, needed: bool) -> str:
    """Return the file of a configuration."""
    text = task.needed("configurl") if needed else task.text("configurl")
    if text.lower().startswith(("http://", "https://")):
        task.found.refuse("configurl is on a server: put the configuration into a file")
    tokens = open_tokens({"configurl": text})
    if tokens:
        task.found.refuse(f"configurl: nothing says what @{tokens[0]}@ is")
    if text.lower().startswith("file:"):
        text = text[5:].removeprefix("//")
    return text


def _tokens(task: Task) -> Mapping[str, str]:
    return {"properties": task.text("properties")} if task.text("properties") else {}


def _seconds(task: Task) -> int:
    """Return the seconds between two questions; 0: as usual."""
    milliseconds = interval(task.values.get("interval", ""))
    if not milliseconds:
        task.found.note(f"each address is asked every {_POLL_S} s: property interval says another")
    return max(1, round(milliseconds / 1000)) if milliseconds else 0
