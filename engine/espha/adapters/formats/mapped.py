"""Contents of the web as records of a topic, by the configuration of a connector."""

from collections.abc import Callable
from pathlib import Path

from lxml import etree

from espha.adapters.config import ConfigError
from espha.adapters.formats.incoming import record_writer, within
from espha.adapters.formats.refused import not_a_row
from espha.mapping import MAX_CONFIGURATION, Mapper, MappingError, configuration
from espha.model import Window
from espha.records.rows import encode


def read_configuration(path: Path, properties: str) -> etree._Element:
    """Read the configuration of a url or websocket connector.

    Args:
        path: its file.
        properties: values for its tokens, `NAME=value;…`.

    Raises:
        ConfigError: it cannot be read.
    """
    values = dict(pair.partition("=")[::2] for pair in properties.split(";") if "=" in pair)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIGURATION + 1)
        if len(content) > MAX_CONFIGURATION:
            raise ConfigError(f"{path}: a configuration has {MAX_CONFIGURATION} bytes at most")
        return configuration(content, values)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except MappingError as error:
        raise ConfigError(f"{path}: {error}") from None


def mapped(
    publisher: etree._Element, window: Window, form: str
) -> Callable[[bytes, str], list[bytes]]:
    """Return the function that makes records of a content, and of the text where it is from.

    Args:
        publisher: the element with functions and loops.
        window: whose events they are.
        form: how the records of its topic are written.

    Raises:
        ConfigError: functions or loops cannot be run.
    """
    try:
        mapper = Mapper(publisher, window)
    except MappingError as error:
        raise ConfigError(f"the configuration: {error}") from None
    write = record_writer(window, form)

    def records(content: bytes, where: str) -> list[bytes]:
        try:
            events = mapper.events(content.decode("utf-8", "replace"), 0)
        except MappingError as error:
            return [not_a_row(f"{where}: {error}", content, form)]
        return [within(encode(write(one)), content, where, form) for one in events]

    return records
