"""The output adapter: a topic's committed records, each one once, in a CSV file."""

import threading
from collections.abc import Sequence
from pathlib import Path

import structlog
from confluent_kafka import Consumer, KafkaException, Message, TopicCollection
from confluent_kafka.admin import AdminClient

from espha.adapters.common import Pauses, choose, file_problem, in_sentences, read_plan, speaks_json
from espha.adapters.config import ConfigError, OutputConfig, load
from espha.adapters.target import TargetFile
from espha.kafka.reader import CLIENT_TUNING, LogError, Offsets, check, open_reader
from espha.model import Field
from espha.protocol.control import Control
from espha.protocol.settings import Settings

_BATCH = 5_000
_ASK_S = 10.0

_LOG = structlog.get_logger()


def run_output(settings: Settings, config_path: Path) -> None:
    """Run an output adapter in this process until it is ended; exits with 1 or 2 on failures."""
    control = Control()
    control.report("starting", False)
    with in_sentences(control):
        config = load(config_path, OutputConfig)
        project, plan = read_plan(settings)
        window, topic = choose(project, plan.outputs, config.window, "an output topic")
        if config.file.header != "none" and speaks_json(window, "sub"):
            raise ConfigError(
                f"window {config.window!r} writes JSON: set the file's header to none"
            )
        header = header_line(config.file.header, window.fields)
        _Copier(config.file.path, topic, header, control).run(settings.bootstrap)


def header_line(kind: str, fields: Sequence[Field]) -> list[bytes]:
    """Return the file's first line, as a list of none or one."""
    names = ["opcode", "flags"] if kind == "full" else []
    names += [field.name for field in fields]
    return [] if kind == "none" else [",".join(names).encode()]


def topic_id(bootstrap: str, topic: str) -> str:
    """Return the id that tells a topic from an earlier one of the same name.

    Raises:
        LogError: the topic does not exist, or nobody answers.
    """
    admin = AdminClient({**CLIENT_TUNING, "bootstrap.servers": bootstrap})
    asked = admin.describe_topics(TopicCollection([topic]), request_timeout=_ASK_S)
    try:
        return str(asked[topic].result(_ASK_S).topic_id)
    except KafkaException as error:
        raise LogError(f"topic {topic}: {error.args[0].str()}") from None


class _Copier:
    """The loop of an output adapter."""

    def __init__(self, path: Path, topic: str, header: list[bytes], control: Control) -> None:
        self._path, self._topic, self._header, self._control = path, topic, header, control
        self._pause, self._pauses = threading.Event(), Pauses()
        self._rows = 0

    def run(self, bootstrap: str) -> None:
        target = self._open(topic_id(bootstrap, self._topic))
        first = Offsets(bootstrap).first(self._topic)
        if target.position.offset < first:
            _LOG.warning(
                "retention has removed records that were never written to the file",
                topic=self._topic,
                wanted=target.position.offset,
                first=first,
            )
        start = max(target.position.offset, first)
        if target.position.length == 0:
            self._append(target, self._header, start)
        self._report(target)
        with open_reader(bootstrap, {self._topic: start}) as consumer:
            while True:
                records = self._take(consumer)
                if records:
                    lines = [record.value() or b"" for record in records]
                    self._append(target, lines, records[-1].offset() + 1)
                    self._rows += len(lines)
                    self._report(target)

    def _open(self, identity: str) -> TargetFile:
        while True:
            try:
                return TargetFile(self._path, self._topic, identity)
            except BlockingIOError:
                self._trouble(
                    f"{self._path}: another adapter writes this file; waiting for its end"
                )
            except OSError as error:
                self._trouble(file_problem(self._path, error))

    def _append(self, target: TargetFile, lines: list[bytes], offset: int) -> None:
        while True:
            try:
                target.append(lines, offset)
            except OSError as error:
                self._trouble(file_problem(self._path, error))
            else:
                self._pauses.reset()
                return

    def _take(self, consumer: Consumer) -> list[Message]:
        """Wait for a record, then take what else is there."""
        waiting = consumer.poll(1.0)
        if waiting is None:
            return []
        more = consumer.consume(_BATCH, 0)
        return [message for message in (waiting, *more) if check(message)]

    def _trouble(self, message: str) -> None:
        _LOG.error(message)
        self._control.report("active", False, rows=self._rows, message=message)
        self._pause.wait(self._pauses.next())

    def _report(self, target: TargetFile) -> None:
        self._control.report(
            "active", True, rows=self._rows, offset=target.position.offset,
            length=target.position.length,
        )  # fmt: skip
