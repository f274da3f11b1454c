"""A folder of files that are there as a whole or not at all, whatever dies at whatever moment.

A file is written under a name that readers of datasets pass over. Once it is on disk, the position
says that it belongs to the dataset; then it gets its own name. Who comes after a death in between
finds the unfinished name, and does the rest. So nobody has to look at the files that are there:
they may be taken away as soon as they have appeared.
"""

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from espha.adapters.config import ConfigError
from espha.durable import UNFINISHED, replace_file, sync_folder

_TOPIC, _TOPIC_ID = b"espha.topic", b"espha.topic_id"
_PART: Final = re.compile(r"part-([0-9]{12,})-([0-9]{12,})\.parquet")
_SET_ASIDE: Final = re.compile(r"_rejected-([0-9]{12,})-([0-9]{12,})\.jsonl")


@dataclass(frozen=True, slots=True)
class DatasetPosition:
    """The dataset holds everything of `topic` (by its id) below `offset`; `part`: its last file."""

    topic: str
    topic_id: str
    offset: int = 0
    part: str = ""


class Dataset:
    """The folder; one process at a time.

    Raises:
        ConfigError: it is of another topic; says what to do.
        BlockingIOError: another adapter writes to it.
        OSError: the file system refuses; nothing is lost.
    """

    def __init__(self, folder: Path, topic: str, topic_id: str) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self._sidecar = folder / "_espha.position"
        with contextlib.ExitStack() as undo:
            lock = folder / "_espha.lock"
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            undo.callback(os.close, self._lock)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.position = self._recall(DatasetPosition(topic, topic_id))
            self._finish()
            self._clean()
            undo.pop_all()

    def add(self, table: Any, set_aside: Sequence[bytes], offset: int) -> None:
        """Add a file; when this returns, it and the offset behind its rows are on disk.

        Args:
            table: its rows, as a `pyarrow.Table`.
            set_aside: lines for the file beside, of records that are no rows.
            offset: behind the records that all this is made of.

        Raises:
            ConfigError: a file of that name is there.
            OSError: the same call may do better later.
        """
        self._finish()
        old = self.position
        if old.offset == offset:
            return
        span = f"{old.offset:012d}-{offset:012d}"
        part = f"part-{span}.parquet" if table.num_rows else ""
        if part:
            if (self._folder / part).exists():
                raise ConfigError(
                    f"{self._folder / part} is there already, and not from this adapter. Move it "
                    "away to go on"
                )
            self._write(self._unfinished(part), table)
        if set_aside:
            lines = [line + b"\n" for line in set_aside]
            replace_file(self._folder / f"_rejected-{span}.jsonl", lines)
        self._remember(DatasetPosition(old.topic, old.topic_id, offset, part))
        self._finish()

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._lock)

    def _unfinished(self, part: str) -> Path:
        return self._folder / f"_{part}{UNFINISHED}"

    def _write(self, path: Path, table: Any) -> None:
        position = self.position
        whose = {_TOPIC: position.topic.encode(), _TOPIC_ID: position.topic_id.encode()}
        with path.open("wb") as file:
            pq.write_table(table.replace_schema_metadata(whose), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())

    def _remember(self, position: DatasetPosition) -> None:
        replace_file(self._sidecar, [json.dumps(asdict(position)).encode()])
        self.position = position

    def _finish(self) -> None:
        """Give the last file its name, if it has not got it yet."""
        part = self.position.part
        if part and self._unfinished(part).exists():
            self._unfinished(part).rename(self._folder / part)
            sync_folder(self._folder)

    def _clean(self) -> None:
        """Remove what somebody left who died before the position said that it counts."""
        for path in self._folder.iterdir():
            found = _SET_ASIDE.fullmatch(path.name)
            later = found is not None and int(found[2]) > self.position.offset
            if later or (path.name.startswith("_") and path.name.endswith(UNFINISHED)):
                path.unlink()

    def _recall(self, fresh: DatasetPosition) -> DatasetPosition:
        known = self._parse() if self._sidecar.exists() else self._of_files(fresh)
        if (known.topic, known.topic_id) != (fresh.topic, fresh.topic_id):
            raise ConfigError(
                f"{self._folder} was written from another topic ({known.topic}, id "
                f"{known.topic_id}); it would now be {fresh.topic}, id {fresh.topic_id}. Move the "
                "folder away to start a new one"
            )
        return known

    def _parse(self) -> DatasetPosition:
        try:
            return DatasetPosition(**json.loads(self._sidecar.read_bytes()))
        except (ValueError, TypeError):
            raise ConfigError(
                f"{self._sidecar} is not an output adapter's position. Remove it to go on behind "
                "the last file of the folder"
            ) from None

    def _of_files(self, fresh: DatasetPosition) -> DatasetPosition:
        """Return the position that the names of the files tell, where nothing else does."""
        found = [match for path in self._folder.iterdir() if (match := _PART.fullmatch(path.name))]
        if not found:
            return fresh
        last = max(found, key=lambda match: int(match[2]))
        try:
            whose = pq.read_schema(self._folder / last[0]).metadata or {}
        except pa.ArrowException as error:
            raise ConfigError(f"{self._folder / last[0]}: {error}. Move it away") from None
        topic, topic_id = (whose.get(key, b"").decode() for key in (_TOPIC, _TOPIC_ID))
        return DatasetPosition(topic, topic_id, int(last[2]))
