"""Events in short words, for windows that keep rows.

`U 1,5,x` is an update with these values, `D/R 1,5,x` a delete by retention, a dash is null.
"""

from collections.abc import Iterable, Sequence

from espha.kernel import Kernel
from espha.model import Project
from espha.model.events import Event
from espha.reader import read_project
from support.models import SUB, source, xml


def text(events: Iterable[Event]) -> str:
    """Write events; flags only when they are not N."""
    return "; ".join(
        f"{event.opcode}{'/' + event.flags if event.flags != 'N' else ''} "
        + ",".join("-" if value is None else str(value) for value in event.values)
        for event in events
    )


def event(words: str) -> Event:
    """Read one event; what looks like a number is one."""
    head, _, cells = words.partition(" ")
    opcode, _, flags = head.partition("/")
    return Event(opcode, flags or "N", tuple(_value(cell) for cell in cells.split(",")))


def _value(cell: str) -> int | float | str | None:
    if cell == "-":
        return None
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def put(kernel: Kernel, words: str, *, window: str = "in", clock: int = 0) -> str:
    """Publish one event; return what leaves, and each refusal behind an exclamation mark."""
    out = kernel.publish(f"q/{window}", event(words), clock)
    found = text(leaving for _, leaving in out)
    refusals = [f"! {reason}" for _, reason in kernel.take_refusals()]
    return "; ".join([*([found] if found else []), *refusals])


def play(kernel: Kernel, steps: Sequence[tuple[str, str, str]]) -> None:
    """Publish (window, event) in turn; each time expect what the third text says."""
    for window, words, expected in steps:
        assert put(kernel, words, window=window) == expected, f"{window}: {words}"


def two(left: str, right: str, window: str, *, index: str = "pi_EMPTY") -> Project:
    """Return the project with sources `l` and `r` of these schemas and `window`, `out`, behind."""
    windows = source(left, name="l") + source(right, name="r") + window
    return read_project(xml(windows, '<edge source="l r" target="out"/>', index=index))


def out(type_: str, body: str, attributes: str = "") -> str:
    """Return a window `out` of this type whose events are seen."""
    return f'<window-{type_} name="out" {attributes}>{body}{SUB}</window-{type_}>'
