"""What `espha local status` shows."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from espha.local.look import Look, in_sync, rows_of
from espha.protocol.status import EngineProgress, ReplicaStatus

_STATES = {"active": "green", "standby": "cyan", "down": "red", "refused": "red", "failed": "red"}


def picture(look: Look, before: Look | None, gap: str) -> RenderableType:
    """Return tables of engines, adapters and servers.

    Args:
        look: what was seen now.
        before: what was seen earlier, for rates.
        gap: the pause at the last take-over, in words.
    """
    parts: list[RenderableType] = [_headline(look, gap), _engines(look, before)]
    if look.adapters():
        parts.append(_adapters(look, before))
    parts.append(_servers(look))
    return Group(*parts)


def _headline(look: Look, gap: str) -> str:
    name = look.spec.name if look.spec else ""
    words = [f"{name}: {look.phase}", f"take-overs {max(0, look.epoch() - 1)}"]
    if look.phase == "failed":
        words.append(look.message)
    return ", ".join(words) + (f", {gap} between commits at the last one" if gap else "")


def _engines(look: Look, before: Look | None) -> Table:
    table = _table("engine", "role", "state", "in sync", "lag", "in/s", "out/s", "restarts")
    told = {name: status.engine for name, status in look.engines().items() if status}
    first = max((one.events_in for one in told.values() if one), default=0)
    for name, status in look.engines().items():
        now, then = told.get(name), _earlier(before, name)
        table.add_row(
            name,
            status.role.value if status else "-",
            _state(status),
            "yes" if in_sync(status) else "no",
            str(first - now.events_in) if now else "-",
            _rate(look, before, *(one.events_in if one else None for one in (now, then))),
            _rate(look, before, *(one.events_out if one else None for one in (now, then))),
            str(_restarts(look, name)),
        )
        _remark(table, status)
    return table


def _earlier(before: Look | None, name: str) -> EngineProgress | None:
    status = before.statuses.get(name) if before else None
    return status.engine if status else None


def _adapters(look: Look, before: Look | None) -> Table:
    table = _table("adapter", "role", "state", "rows", "rows/s", "restarts")
    for name, status in look.adapters().items():
        rows = rows_of(status)
        rate = _rate(look, before, rows, rows_of(before.statuses.get(name)) if before else None)
        table.add_row(
            name,
            status.role.value if status else "-",
            _state(status),
            "-" if rows is None else str(rows),
            rate,
            str(_restarts(look, name)),
        )
        _remark(table, status)
    return table


def _servers(look: Look) -> Table:
    table = _table("server", "state", "restarts")
    for name, serves in look.servers.items():
        state = "[green]serves[/]" if serves else "[red]down[/]"
        table.add_row(name, state, str(max(0, look.starts.get(name, 1) - 1)))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        right = column in ("lag", "in/s", "out/s", "rows", "rows/s", "restarts")
        table.add_column(column.upper(), justify="right" if right else "left", no_wrap=True)
    return table


def _state(status: ReplicaStatus | None) -> str:
    state = status.state.value if status else "down"
    colour = _STATES.get(state)
    return f"[{colour}]{state}[/]" if colour else state


def _remark(table: Table, status: ReplicaStatus | None) -> None:
    if status and status.message:
        table.add_row("", f"[yellow]{escape(status.message)}[/]")


def _restarts(look: Look, name: str) -> int:
    """Count what the supervisor has started again, and what the daemon has."""
    status = look.statuses.get(name)
    return (status.restarts if status else 0) + max(0, look.starts.get(name, 1) - 1)


def _rate(look: Look, before: Look | None, now: int | None, then: int | None) -> str:
    if before is None or now is None or then is None:
        return "-"
    return f"{max(0, now - then) / (look.moment - before.moment):.1f}"
