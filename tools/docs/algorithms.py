"""The inputs, parameters and results of the algorithms of calculate windows, as tables."""

import re
from collections.abc import Iterator

from espha.windows.calculate.contract import Algorithm, Parameter
from espha.windows.calculate.declared import ALGORITHMS

_SECTION = re.compile(r"^## (\w+)\n\n(.*?)\n*(?=^## |\Z)", re.DOTALL | re.MULTILINE)


def with_algorithms(text: str) -> str:
    """Return a page with a table at the end of each section that is called like an algorithm.

    Raises:
        ValueError: an algorithm has no section.
    """
    missing = set(ALGORITHMS) - {match[1] for match in _SECTION.finditer(text)}
    if missing:
        raise ValueError(f"no section for {', '.join(sorted(missing))}")
    return _SECTION.sub(_section, text)


def _section(match: re.Match[str]) -> str:
    algorithm = ALGORITHMS.get(match[1])
    table = "" if algorithm is None else "\n\n" + "\n".join(_table(algorithm))
    return f"## {match[1]}\n\n{match[2]}{table}\n\n"


def _table(algorithm: Algorithm) -> Iterator[str]:
    yield "| | name | | |"
    yield "| --- | --- | --- | --- |"
    for name, role in algorithm.inputs.items():
        form = ", ".join(
            word for word, holds in (("list", role.many), ("optional", not role.needed)) if holds
        )
        yield _row("input", name, form, role.note)
    for name, parameter in algorithm.parameters.items():
        yield _row("parameter", name, _form(parameter), parameter.note)
    for name, result in algorithm.results.items():
        yield _row("result", name, "list" if result.many else "", result.note)


def _row(*cells: str) -> str:
    kind, name, form, note = cells
    return f"| {kind} | `{name}` | {form} | {note} |"


def _form(parameter: Parameter) -> str:
    default = parameter.default
    if isinstance(default, bool):
        return f"{int(default)}; 0 or 1"
    if isinstance(default, str):
        choices = ", ".join(parameter.choices)
        return "; ".join(part for part in (f"`{default}`" if default else "", choices) if part)
    return f"{default:g}; {_number(parameter.low)} … {_number(parameter.high)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e7 else f"{value:g}"
