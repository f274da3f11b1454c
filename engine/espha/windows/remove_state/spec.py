"""Remove-state windows: every event becomes an insert with a number for its key."""

from typing import Final, Literal, cast, get_args

from espha.model.project import Field, Window
from espha.model.xml import boolean
from espha.windows.shared.spec import Reading, WindowType

Removed = Literal[
    "updates", "deletes", "retentionUpdates", "retentionDeletes", "updateBlockDeletes"
]

NUMBER: Final = Field("eventNumber", "int64", True)
LOG_FIELDS: Final = (Field("originalOC", "string"), Field("originalFL", "string"))
"""What `add-log-fields` adds after the number."""


class RemoveStateWindow(Window):
    """Makes inserts of everything.

    Attributes:
        remove: kinds of events that do not leave, in the order of the schema of the attribute.
        log_fields: opcode and flags of the input are fields.
    """

    type: Literal["remove-state"] = "remove-state"
    remove: tuple[Removed, ...] = ()
    log_fields: bool = False


def _read(reading: Reading) -> RemoveStateWindow | None:
    findings = reading.findings
    before = len(findings.problems)
    log_fields = boolean(reading.element, "add-log-fields", findings)
    remove = _removed(reading)
    added = (NUMBER, *LOG_FIELDS) if log_fields else (NUMBER,)
    taken = {field.name for field in added} & {field.name for field in reading.feed}
    for name in sorted(taken):
        reading.refuse(f"the input has a field {name!r}, which this window adds; rename it")
    if len(findings.problems) > before:
        return None
    fields = (*added, *(field._replace(key=False) for field in reading.feed))
    return RemoveStateWindow(
        **{**reading.common, "fields": fields}, remove=remove, log_fields=log_fields
    )


def _removed(reading: Reading) -> tuple[Removed, ...]:
    words = reading.element.get("remove", "").replace(",", " ").split()
    known = get_args(Removed)
    for word in words:
        if word not in known:
            reading.refuse(f"remove: {word!r} is not one of: {', '.join(known)}")
    return tuple(cast(Removed, word) for word in known if word in words)


WINDOW = WindowType(
    "remove-state", _read, "rows", attributes=frozenset({"remove", "add-log-fields"})
)
