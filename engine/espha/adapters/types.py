"""The adapters that there are: the only list."""

from typing import Final

from espha.adapters.config import AdapterConfig, AdapterType, Direction, with_types
from espha.adapters.file_input.spec import ADAPTER as FILE_INPUT
from espha.adapters.file_output.spec import ADAPTER as FILE_OUTPUT
from espha.adapters.http_input.spec import ADAPTER as HTTP_INPUT
from espha.adapters.http_output.spec import ADAPTER as HTTP_OUTPUT
from espha.adapters.kafka_input.spec import ADAPTER as KAFKA_INPUT
from espha.adapters.kafka_output.spec import ADAPTER as KAFKA_OUTPUT
from espha.adapters.mqtt_input.spec import ADAPTER as MQTT_INPUT
from espha.adapters.mqtt_output.spec import ADAPTER as MQTT_OUTPUT
from espha.adapters.parquet_output.spec import ADAPTER as PARQUET_OUTPUT
from espha.adapters.poll_input.spec import ADAPTER as POLL_INPUT
from espha.adapters.script_input.spec import ADAPTER as SCRIPT_INPUT
from espha.adapters.socket_input.spec import ADAPTER as SOCKET_INPUT
from espha.adapters.socket_output.spec import ADAPTER as SOCKET_OUTPUT
from espha.adapters.table_output.spec import ADAPTER as TABLE_OUTPUT
from espha.adapters.timer_input.spec import ADAPTER as TIMER_INPUT
from espha.adapters.websocket_input.spec import ADAPTER as WEBSOCKET_INPUT

ADAPTERS: Final = (
    FILE_INPUT,
    SOCKET_INPUT,
    HTTP_INPUT,
    TIMER_INPUT,
    FILE_OUTPUT,
    TABLE_OUTPUT,
    PARQUET_OUTPUT,
    SOCKET_OUTPUT,
    HTTP_OUTPUT,
    KAFKA_INPUT,
    KAFKA_OUTPUT,
    MQTT_INPUT,
    MQTT_OUTPUT,
    POLL_INPUT,
    WEBSOCKET_INPUT,
    SCRIPT_INPUT,
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
