"""The input adapter: publishes the rows of a file, each one once, whoever of the pair does it.

Standby: wait to be elected.
Active: fence the other one; read this adapter's last committed position back from the topic; from
there, publish what the file holds. Row and position are one record, so they cannot disagree.
"""

import threading
from dataclasses import replace
from pathlib import Path

import structlog

from espha.adapters.canonical import Canonical
from espha.adapters.common import Pauses, choose, file_problem, in_sentences, read_plan, speaks_json
from espha.adapters.config import ConfigError, InputConfig, load
from espha.adapters.source import Position, SourceFile, source_position
from espha.kafka.reader import Offsets, records_backwards
from espha.kafka.writer import FencedWriter, Record
from espha.protocol.control import Control
from espha.protocol.settings import Settings

HEADER = "espha-source"
_POLL_S = 0.02

_LOG = structlog.get_logger()


def run_input(settings: Settings, config_path: Path) -> None:
    """Run an input adapter in this process until it is ended; exits with 1 or 2 on failures."""
    control = Control()
    control.report("starting", False)
    with in_sentences(control):
        config = load(config_path, InputConfig)
        project, plan = read_plan(settings)
        window, topic = choose(project, plan.inputs, config.window, "an input topic")
        if speaks_json(window, "pub"):
            raise ConfigError(f"window {config.window!r} reads JSON, this adapter writes CSV")
        canonical = Canonical(config.file, window.fields)
        writer = FencedWriter(settings.bootstrap, f"{plan.prefix}.in.{config.name}")
        control.report("standby", True)
        while not control.wait_active(60.0):
            pass
        writer.fence()
        position = read_back(settings.bootstrap, topic, config)
        _LOG.info("active", topic=topic, file=position.file, line=position.line)
        _Publisher(config, canonical, topic, writer, control).run(position)


def read_back(bootstrap: str, topic: str, config: InputConfig) -> Position:
    """Return the position behind the last row that this adapter has published.

    Raises:
        ConfigError: retention has removed records, and with them perhaps the position.
    """
    for message in records_backwards(bootstrap, topic):
        header = dict(message.headers() or ()).get(HEADER)
        if header is not None:
            position = Position.from_header(header)
            if position.adapter == config.name:
                return replace(position, file=str(config.file.path))
    if Offsets(bootstrap).first(topic) > 0:
        raise ConfigError(
            f"topic {topic}: retention has removed the last position of adapter {config.name!r}, "
            "so nobody knows which rows of the file were published. Give the adapter a new name "
            "to publish the file from its beginning"
        )
    return source_position(config.name, config.file.path)


class _Publisher:
    """The loop of an active input adapter."""

    def __init__(
        self,
        config: InputConfig,
        canonical: Canonical,
        topic: str,
        writer: FencedWriter,
        control: Control,
    ) -> None:
        self._config, self._canonical, self._topic = config, canonical, topic
        self._writer, self._control = writer, control
        self._rows = 0
        self._told = ""

    def run(self, position: Position) -> None:
        source = SourceFile(self._config.file, position)
        pause, pauses = threading.Event(), Pauses()
        self._report(position)
        while True:
            try:
                found = source.poll()
            except OSError as error:
                self._trouble(file_problem(self._config.file.path, error), source)
                pause.wait(pauses.next())
                continue
            pauses.reset()
            if found:
                self._writer.commit(self._record(row.columns, row.position) for row in found)
                self._rows += len(found)
                self._report(found[-1].position)
            else:
                pause.wait(_POLL_S)  # there is no event for "a file grew" on network volumes

    def _record(self, columns: list[str], position: Position) -> Record:
        return Record(self._topic, self._canonical.text(columns), ((HEADER, position.to_header()),))

    def _report(self, position: Position) -> None:
        self._told = ""
        self._control.report(
            "active",
            True,
            rows=self._rows,
            line=position.line,
            offset=position.offset,
            generation=position.generation,
        )

    def _trouble(self, message: str, source: SourceFile) -> None:
        source.close()
        if message != self._told:
            self._told = message
            _LOG.error(message)
            self._control.report("active", True, rows=self._rows, message=message)
