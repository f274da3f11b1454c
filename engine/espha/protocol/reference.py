"""The reference of settings, status, metrics, states and reasons, as Markdown made of the types.

`python -m espha.protocol.reference TABLE` prints a table; the names are those of `TABLES`.
"""

import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from espha.protocol.order import OrderRecord
from espha.protocol.settings import Settings, variable
from espha.protocol.states import (
    EndReason,
    EngineState,
    Explained,
    KillReason,
    Step,
    SwitchoverReason,
)
from espha.protocol.status import (
    EngineProgress,
    InputProgress,
    OutputProgress,
    ReplicaStatus,
    Shown,
    shown,
)

SAID_BY: dict[str, type[BaseModel]] = {
    "all": ReplicaStatus,
    "engine": EngineProgress,
    "input adapter": InputProgress,
    "output adapter": OutputProgress,
}
"""Who shows which facts in its status; `all`: each supervisor."""


def settings() -> str:
    """Return the table of environment variables: name, meaning, default."""
    rows = (
        (f"`{variable(name)}`", field.description or "", _default(field))
        for name, field in Settings.model_fields.items()
    )
    return _table(("variable", "meaning", "default"), rows)


def status() -> str:
    """Return the table of what `/status` shows: field, who shows it, type, meaning."""
    rows = (
        (f"`{name}`", who, _type(field.annotation), field.description or "")
        for who, name, field in _facts()
    )
    return _table(("field", "shown by", "type", "meaning"), rows)


def metrics() -> str:
    """Return the table of Prometheus metrics: name, who shows it, meaning."""
    labels = ", ".join(
        dict.fromkeys(f"`{name}`" for _, name, field in _facts() if shown(field) is Shown.LABEL)
    )
    named = {Shown.GAUGE: "`espha_{}`", Shown.COUNTS: '`espha_{}{{reason="…"}}`'}
    rows = [
        (named[how].format(name), who, field.description or "")
        for who, name, field in _facts()
        if (how := shown(field)) in named
    ]
    info = ("`espha_info`", "all", f"Always 1; facts that are texts are its labels: {labels}.")
    return _table(("metric", "shown by", "meaning"), [info, *rows])


def states() -> str:
    """Return the table of a replica's states: name, meaning, whether a life ends with it."""
    rows = ((f"`{one}`", one.sentence, "yes" if one.terminal else "no") for one in EngineState)
    return _table(("state", "meaning", "the process ends in it"), rows)


def steps() -> str:
    """Return the table of steps: name, meaning, what the main loop waits for."""
    rows = ((f"`{one}`", one.sentence, "yes" if one.computes else "no") for one in Step)
    return _table(("step", "meaning", "something computes"), rows)


def reasons() -> str:
    """Return the tables of reasons: why a child ends, why it is killed, switchover's answers."""
    ends = ((f"`{one}`", one.sentence, f"`{one.state}`", str(int(one.code))) for one in EndReason)
    kills = ((f"`{one}`", one.sentence) for one in KillReason)
    answers = ((f"`{one}`", one.sentence, str(one.code)) for one in SwitchoverReason)
    return "\n".join(
        (
            "Why a process ends itself:\n",
            _table(("reason", "meaning", "state", "exit code"), ends),
            "Why a supervisor kills its child:\n",
            _table(("reason", "meaning"), kills),
            "What a supervisor answers to `POST /switchover`:\n",
            _table(("reason", "meaning", "HTTP code"), answers),
        )
    )


def order() -> str:
    """Return the table of an order record's fields."""
    rows = (
        (f"`{name}`", field.description or "") for name, field in OrderRecord.model_fields.items()
    )
    return _table(("field", "meaning"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "settings": settings,
    "status": status,
    "metrics": metrics,
    "states": states,
    "steps": steps,
    "reasons": reasons,
    "order": order,
}


def _facts() -> Iterator[tuple[str, str, FieldInfo]]:
    for who, model in SAID_BY.items():
        for name, field in model.model_fields.items():
            if name != "progress":
                yield who, name, field


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be set"
    if field.default_factory is not None:
        return "host's name" if field.default_factory is socket.gethostname else "none"
    return f"`{field.default}`" if field.default not in ("", None) else "none"


def _type(annotation: Any) -> str:
    """Return the name of a field's type as JSON has it."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [_type(one) for one in get_args(annotation) if one is not NoneType]
        return " or ".join([*parts, "null"])
    known = {bool: "true or false", int: "integer", float: "number"}
    if get_origin(annotation) is dict:
        return "object"
    if isinstance(annotation, type) and issubclass(annotation, Explained):
        return "name"
    return known.get(annotation, "text")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ((cell.replace("|", "\\|") for cell in line) for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def main(arguments: list[str]) -> int:
    """Print the table that is named; return the exit code."""
    if len(arguments) != 1 or arguments[0] not in TABLES:
        sys.stderr.write(f"usage: python -m espha.protocol.reference {'|'.join(TABLES)}\n")
        return 2
    sys.stdout.write(TABLES[arguments[0]]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
