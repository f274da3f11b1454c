"""The adapters that there are: the only list."""

from typing import Final

from espha.adapters.config import AdapterConfig, AdapterType, Direction, with_types
from espha.adapters.file_input.spec import ADAPTER as FILE_INPUT
from espha.adapters.file_output.spec import ADAPTER as FILE_OUTPUT
from espha.adapters.kafka_input.spec import ADAPTER as KAFKA_INPUT
from espha.adapters.kafka_output.spec import ADAPTER as KAFKA_OUTPUT
from espha.adapters.parquet_output.spec import ADAPTER as PARQUET_OUTPUT
from espha.adapters.table_output.spec import ADAPTER as TABLE_OUTPUT

ADAPTERS: Final = (
    FILE_INPUT,
    KAFKA_INPUT,
    FILE_OUTPUT,
    TABLE_OUTPUT,
    PARQUET_OUTPUT,
    KAFKA_OUTPUT,
)


def adapters(direction: Direction) -> tuple[AdapterType, ...]:
    """Return those of one direction."""
    return tuple(one for one in ADAPTERS if one.direction == direction)


@with_types(adapters("pub"))
class InputConfig(AdapterConfig):
    """What feeds a source window."""


@with_types(adapters("sub"))
class OutputConfig(AdapterConfig):
    """What takes the results of a window."""
