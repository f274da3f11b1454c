"""A CSV file that grows by exactly what was read, whatever dies at whatever moment.

Beside the file stands `<file>.position`: how many bytes of the file are certain, and the offset
behind them. It is replaced atomically, after the file's bytes are on disk. What the file holds
beyond that length was written by somebody who died before saying so: it is cut off, and written
again.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from espha.adapters.config import ConfigError
from espha.durable import replace_file, sync_folder, write_all

_LOG = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """`length` bytes of the file hold everything of `topic` (by its id) below `offset`."""

    topic: str
    topic_id: str
    length: int = 0
    offset: int = 0


class TargetFile:
    """The file and its position; one process at a time.

    Raises:
        ConfigError: the file and its position do not belong together; says what to do.
        BlockingIOError: another adapter writes this file.
        OSError: the file system refuses (no space, no permission); nothing is lost.
    """

    def __init__(self, path: Path, topic: str, topic_id: str) -> None:
        self._path = path
        self._sidecar = path.with_name(path.name + ".position")
        with contextlib.ExitStack() as undo:
            lock = path.with_name(path.name + ".lock")
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            undo.callback(os.close, self._lock)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.position = self._recall(TargetPosition(topic, topic_id))
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            undo.callback(os.close, self._descriptor)
            sync_folder(path.parent)
            self._cut()
            undo.pop_all()

    def append(self, lines: Iterable[bytes], offset: int) -> None:
        """Add lines; when this returns, they and the offset behind them are on disk.

        Raises:
            OSError: nothing was added as far as a later `append` or start is concerned.
        """
        data = b"".join(line + b"\n" for line in lines)
        self._cut()
        write_all(self._descriptor, data, self.position.length)
        os.fsync(self._descriptor)
        old = self.position
        self._remember(TargetPosition(old.topic, old.topic_id, old.length + len(data), offset))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)
        os.close(self._lock)

    def _recall(self, fresh: TargetPosition) -> TargetPosition:
        size = self._path.stat().st_size if self._path.exists() else 0
        if not self._sidecar.exists():
            if size:
                raise ConfigError(
                    f"{self._path} holds data, but {self._sidecar.name} is not beside it: this "
                    "file was not written by an output adapter. Move it away to go on"
                )
            self._remember(fresh)  # before the first byte: then every byte is accounted for
            return fresh
        known = self._parse()
        if (known.topic, known.topic_id) != (fresh.topic, fresh.topic_id):
            raise ConfigError(
                f"{self._path} was written from another topic ({known.topic}, id "
                f"{known.topic_id}); it would now be {fresh.topic}, id {fresh.topic_id}. Move "
                f"the file and {self._sidecar.name} away to start a new one"
            )
        if size < known.length:
            raise ConfigError(
                f"{self._path} has {size} bytes, but the adapter wrote {known.length}. Put the "
                f"file back, or remove {self._sidecar.name} and the file to write it again from "
                "the beginning of the topic"
            )
        return known

    def _parse(self) -> TargetPosition:
        try:
            return TargetPosition(**json.loads(self._sidecar.read_bytes()))
        except (ValueError, TypeError):
            raise ConfigError(
                f"{self._sidecar} is not an output adapter's position. Move it and the file away"
            ) from None

    def _remember(self, position: TargetPosition) -> None:
        content = json.dumps(asdict(position)).encode()
        # Should a crash bring the old position back, what comes after it is cut off and written
        # again.
        replace_file(self._sidecar, [content], sync_name=False)
        self.position = position

    def _cut(self) -> None:
        surplus = os.fstat(self._descriptor).st_size - self.position.length
        if surplus:
            _LOG.info("cutting off bytes without a position", file=str(self._path), bytes=surplus)
            os.ftruncate(self._descriptor, self.position.length)
