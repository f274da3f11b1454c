"""The reference of the `espha` command, in Markdown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer.main

from espha.cli import app

_HELP: Final = "help"
_TYPES: Final = {Path: "FILE", int: "NUMBER", float: "NUMBER"}


def cli() -> str:
    """Return a section for each command: usage, what it does, arguments, options."""
    return "\n".join(_section(path, command) for path, command in commands())


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command that can be run, with its words, in the order of `espha --help`."""
    yield from _below("espha", typer.main.get_command(app))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    parts = getattr(command, "commands", None)
    if parts is None:
        yield path, command
        return
    for name, part in parts.items():
        if not part.hidden:
            yield from _below(f"{path} {name}", part)


def _section(path: str, command: Any) -> str:
    shown = [one for one in command.params if one.name != _HELP]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    options = [one for one in shown if one.param_type_name == "option" and not one.hidden]
    usage = " ".join([path, *["[OPTIONS]"] * bool(options), *(_metavar(one) for one in arguments)])
    parts = [f"## `{path}`\n", f"{_text(command.help)}\n", f"```text\n{usage}\n```\n"]
    if arguments:
        parts.append(_table("argument", ((_metavar(one), one) for one in arguments)))
    if options:
        parts.append(_table("option", ((_names(one), one) for one in options)))
    return "\n".join(parts)


def _table(head: str, rows: Iterator[tuple[str, Any]]) -> str:
    lines = [f"| {head} | meaning | default |", "| --- | --- | --- |"]
    for name, one in rows:
        lines.append(f"| `{_cell(name)}` | {_cell(_text(one.help))} | {_default(one)} |")
    return "\n".join(lines) + "\n"


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 else f"{name}…"


def _names(option: Any) -> str:
    spelled = ", ".join(sorted([*option.opts, *option.secondary_opts], key=len))
    if option.is_flag:
        return spelled
    return f"{spelled} {option.metavar or _TYPES.get(option.type_descriptor.annotation, 'TEXT')}"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    name = f"`{parameter.envvar}`" if parameter.envvar else ""
    value = parameter.default
    shown = "" if value in (None, "", ()) or isinstance(value, bool) else f"`{value}`"
    return ", else ".join(filter(None, (name, shown)))


def _text(text: str | None) -> str:
    return (text or "").strip()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", " or ")
