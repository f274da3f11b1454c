"""Source windows."""

from typing import Literal

from espha.model.project import Window
from espha.model.schema import read_schema
from espha.model.xml import boolean
from espha.windows.shared.spec import Reading, WindowType


class SourceWindow(Window):
    """Where events enter the model."""

    type: Literal["source"] = "source"
    insert_only: bool = False
    autogen_key: bool = False


def _read(reading: Reading) -> SourceWindow | None:
    findings, element = reading.findings, reading.element
    fields = read_schema(element, findings)
    insert_only = boolean(element, "insert-only", findings)
    autogen = boolean(element, "autogen-key", findings)
    if fields is None:
        return None
    keys = [field for field in fields if field.key]
    if autogen and not insert_only:
        reading.refuse('autogen-key needs insert-only="true"')
    if autogen and (len(keys) != 1 or keys[0].type not in {"int64", "string"}):
        reading.refuse("autogen-key needs exactly one key field, of type int64 or string")
    return SourceWindow(
        **reading.common, fields=fields, insert_only=insert_only, autogen_key=autogen
    )


WINDOW = WindowType(
    "source",
    _read,
    "entry",
    elements=frozenset({"schema", "schema-string"}),
    attributes=frozenset({"insert-only", "autogen-key"}),
    inputs=(0, 0),
)
