"""What both adapters do alike: get ready from environment and configuration, fail in a sentence."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import structlog

from espha.adapters.config import ConfigError
from espha.connectors.topics import TopicPlan, topic_plan
from espha.kafka.reader import LogError
from espha.kafka.writer import WriterFailed
from espha.model import ModelError, Project, Window
from espha.protocol.control import Control
from espha.protocol.settings import Settings
from espha.reader import read_project

_LOG = structlog.get_logger()


def read_plan(settings: Settings) -> tuple[Project, TopicPlan]:
    """Return the model and its topic names.

    Raises:
        ConfigError: the model cannot be read.
    """
    try:
        project = read_project(settings.model.read_bytes(), settings.model.name)
    except OSError as error:
        raise ConfigError(f"{settings.model}: {error.strerror}") from None
    except ModelError as error:
        raise ConfigError(f"{settings.model}: {error}") from None
    return project, topic_plan(project, settings.prefix, settings.deployment)


def choose(project: Project, topics: dict[str, str], window: str, what: str) -> tuple[Window, str]:
    """Return a window and its topic.

    Raises:
        ConfigError: the window has no such topic; the text lists those that do.
    """
    if window not in topics:
        known = ", ".join(topics) or "none"
        raise ConfigError(f"window {window!r}: not a window with {what} (there are: {known})")
    return project.windows[window], topics[window]


def speaks_json(window: Window, direction: Literal["pub", "sub"]) -> bool:
    """Tell whether a window's kafka connector of this direction reads or writes JSON."""
    connector = window.kafka(direction)
    return connector is not None and connector.properties.get("kafkatype", "").strip() == "json"


@contextmanager
def in_sentences(control: Control) -> Iterator[None]:
    """Turn failures into one log line and an exit code: 2 for what people have to change."""
    try:
        yield
    except ConfigError as error:
        _end(control, "refused", str(error), 2)
    except (LogError, WriterFailed) as error:
        _end(control, "failed", f"{type(error).__name__}: {error}", 1)


def _end(control: Control, state: str, message: str, code: int) -> None:
    _LOG.error(message, state=state)
    control.report(state, False, message=message)
    sys.exit(code)


def file_problem(path: Path, error: OSError) -> str:
    """Say what is wrong with a file, and that nothing is lost."""
    return f"{path}: {error.strerror}; trying again, nothing is lost"


class Pauses:
    """Growing pauses between tries, in seconds: 0.1, 0.2, 0.4 … 30."""

    def __init__(self) -> None:
        self._next = 0.1

    def next(self) -> float:
        """Return the next pause."""
        pause, self._next = self._next, min(self._next * 2, 30.0)
        return pause

    def reset(self) -> None:
        """Start again with the shortest: something worked."""
        self._next = 0.1
