"""A file that grows by exactly what was read, whatever dies at whatever moment.

Beside the file stands `<file>.position`: how many bytes of the file are certain, and the offset
behind them. It is replaced atomically, after the file's bytes are on disk. What the file holds
beyond that length was written by somebody who died before saying so: it is cut off, and written
again.

Others cut, move and delete files. So before each write the file is looked at: it has to be the one
that is called so, with what was written into it. All writes are appends: where somebody cuts the
file in that very moment, the system does not fill the hole with NULs.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import structlog

from espha.adapters.config import ConfigError
from espha.durable import replace_file, sync_folder

_LOG = structlog.get_logger()
_MARK_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """`length` bytes of the file hold everything of `topic` (by its id) from `first` to `offset`.

    Attributes:
        topic: what is written.
        topic_id: the id that Kafka has given it.
        length: bytes of the file that are certain.
        offset: of the first record that was not written.
        first: of the first record that belongs into this file.
        mark: digest of the last certain bytes; empty: not known.
        inode: of the file; 0: not known.
        since: when its first row came, in seconds since 1970; 0: it has none.
        moving: name that the file is about to get, because it is full; empty: it is not.
    """

    topic: str
    topic_id: str
    length: int = 0
    offset: int = 0
    first: int = 0
    mark: str = ""
    inode: int = 0
    since: float = 0.0
    moving: str = ""


class TargetFile:
    """The file and its position; one process at a time.

    Args:
        path: of the file.
        topic: what is written.
        topic_id: the id that Kafka has given it.
        follow: a file that is gone is followed by a new one; otherwise it is missed.
        now: returns seconds since 1970.

    Raises:
        ConfigError: the file and its position do not belong together; says what to do.
        BlockingIOError: another adapter writes this file.
        OSError: the file system refuses (no space, no permission); nothing is lost.
    """

    def __init__(
        self,
        path: Path,
        topic: str,
        topic_id: str,
        *,
        follow: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._follow, self._now = path, follow, now
        self._sidecar = path.with_name(path.name + ".position")
        with contextlib.ExitStack() as undo:
            lock = path.with_name(path.name + ".lock")
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            undo.callback(os.close, self._lock)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.position = self._recall(TargetPosition(topic, topic_id))
            self._descriptor: int | None = self._reach()
            undo.pop_all()

    def append(self, lines: Sequence[bytes], offset: int, header: Sequence[bytes] = ()) -> None:
        """Add lines; when this returns, they and the offset behind them are on disk.

        A file that was moved away is followed by a new one.

        Args:
            lines: without their newlines.
            offset: behind the records that they are made of.
            header: what comes first in each file.

        Raises:
            ConfigError: the file is gone, or no longer holds what was written; nothing was added.
            OSError: nothing was added as far as a later `append` or start is concerned.
        """
        descriptor = self._look()
        old = self.position
        data = b"".join(line + b"\n" for line in (*(() if old.length else header), *lines))
        for start in range(0, len(data), 2**30):  # what one call takes at most is 2 GiB
            _write(descriptor, data[start : start + 2**30])
        os.fsync(descriptor)
        length = old.length + len(data)
        state = os.fstat(descriptor)
        if not state.st_nlink and self._follow:
            raise FileNotFoundError(errno.ENOENT, "deleted while it was written to")
        if state.st_size != length or not state.st_nlink:
            raise self._lacking(state.st_size)
        self._remember(
            replace(
                old,
                length=length,
                offset=offset,
                mark=_mark(descriptor, length) if data else old.mark,
                since=old.since or (self._now() if lines else 0.0),
            )
        )

    def move(self) -> None:
        """Give the file the name `<name>-<first offset>` for good; the next lines begin a new one.

        Raises:
            ConfigError: there is a file of that name.
            OSError: it cannot be done; the file still is the one that grows.
        """
        self._look()
        path, position = self._path, self.position
        goal = path.with_name(f"{path.stem}-{position.first:012d}{path.suffix}")
        self._refuse_over(goal)
        self._remember(replace(position, moving=goal.name), sync_name=True)
        self._let_go()
        self._descriptor = self._reach()

    @property
    def age(self) -> float:
        """Seconds since the file got its first row; 0 where it has none."""
        since = self.position.since
        return max(0.0, self._now() - since) if since else 0.0

    def close(self) -> None:
        """Let go of the file."""
        self._let_go()
        os.close(self._lock)

    def _recall(self, fresh: TargetPosition) -> TargetPosition:
        if not self._sidecar.exists():
            if self._path.exists() and self._path.stat().st_size:
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
        return known

    def _parse(self) -> TargetPosition:
        try:
            return TargetPosition(**json.loads(self._sidecar.read_bytes()))
        except (ValueError, TypeError):
            raise ConfigError(
                f"{self._sidecar} is not an output adapter's position. Move it and the file away"
            ) from None

    def _remember(self, position: TargetPosition, *, sync_name: bool = False) -> None:
        content = json.dumps(asdict(position)).encode()
        # Should a crash bring the old position back, what comes after it is cut off and written
        # again. Only once the file has got another name, that would be the wrong file.
        replace_file(self._sidecar, [content], sync_name=sync_name)
        self.position = position

    def _reach(self) -> int:
        """Open the file, as it was left behind."""
        position = self.position
        if position.moving:
            self._finish_moving()
        elif position.length and not self._size() and self._is_elsewhere():
            self._begin_next("moved away")
        if self.position.length and not self._path.exists():
            self._miss()
        return self._open()

    def _miss(self) -> None:
        """Refuse a file that is gone, or have it followed by a new one."""
        if not self._follow:
            raise self._lacking(0)
        self._begin_next("deleted")

    def _begin_next(self, why: str) -> None:
        _LOG.warning(f"the file was {why}; a new one begins", file=str(self._path))
        self._remember(self._next(), sync_name=True)

    def _finish_moving(self) -> None:
        """Do what an adapter had begun that died; whoever takes full files may have been there."""
        path, goal = self._path, self._path.with_name(self.position.moving)
        if path.exists() and path.stat().st_ino == self.position.inode:
            self._refuse_over(goal)
            path.rename(goal)
            sync_folder(goal.parent)
        self._remember(self._next(), sync_name=True)

    def _refuse_over(self, goal: Path) -> None:
        if goal.exists():
            raise ConfigError(
                f"{self._path} is full, but {goal} is there already. Move that one away"
            )

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def _is_elsewhere(self) -> bool:
        """Say whether the file is there under another name of its folder."""
        for entry in os.scandir(self._path.parent):
            if entry.inode() == self.position.inode and entry.is_file(follow_symlinks=False):
                descriptor = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    return self._fault(descriptor) is None
                finally:
                    os.close(descriptor)
        return False

    def _next(self) -> TargetPosition:
        old = self.position
        return TargetPosition(old.topic, old.topic_id, offset=old.offset, first=old.offset)

    def _let_go(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o644)
        try:
            sync_folder(self._path.parent)
            self._check(descriptor)
            inode = os.fstat(descriptor).st_ino
            if inode != self.position.inode:
                self._remember(replace(self.position, inode=inode))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _look(self) -> int:
        """See to it that what is called like the file is the file, with what was written.

        Returns:
            Its descriptor.
        """
        if self._descriptor is None:
            self._descriptor = self._reach()
            return self._descriptor
        mine, there = os.fstat(self._descriptor), self._there()
        if there is not None and os.path.samestat(mine, there):
            self._check(self._descriptor)
            return self._descriptor
        if mine.st_nlink and not (there and there.st_size) and not self._fault(self._descriptor):
            self._check(self._descriptor)
            self._begin_next("moved away")
        elif there is None and self.position.length:
            self._miss()
        self._let_go()
        self._descriptor = self._open()
        return self._descriptor

    def _there(self) -> os.stat_result | None:
        try:
            return self._path.stat()
        except FileNotFoundError:
            return None

    def _check(self, descriptor: int) -> None:
        """Refuse a file that is not as it was left; cut off what has no position."""
        fault = self._fault(descriptor)
        if fault is not None:
            raise fault
        size, certain = os.fstat(descriptor).st_size, self.position.length
        if size > certain:
            _LOG.info(
                "cutting off bytes without a position", file=str(self._path), bytes=size - certain
            )
            os.ftruncate(descriptor, certain)

    def _fault(self, descriptor: int) -> ConfigError | None:
        state, position = os.fstat(descriptor), self.position
        if state.st_size < position.length:
            return self._lacking(state.st_size)
        if not position.length and state.st_size and position.inode not in {0, state.st_ino}:
            return self._changed()
        if position.mark and _mark(descriptor, position.length) != position.mark:
            return self._changed()
        return None

    def _lacking(self, size: int) -> ConfigError:
        return ConfigError(
            f"{self._path} has {size} bytes, but the adapter wrote {self.position.length}. "
            f"{self._remedy()}"
        )

    def _changed(self) -> ConfigError:
        return ConfigError(
            f"{self._path} was changed: the {self.position.length} bytes that the adapter wrote "
            f"are not at its beginning. {self._remedy()}"
        )

    def _remedy(self) -> str:
        return (
            f"Put the file back, or remove {self._sidecar.name} and the file to write it again "
            "from the beginning of the topic"
        )


def _mark(descriptor: int, length: int) -> str:
    """Return the digest of the last of so many bytes."""
    start = max(0, length - _MARK_BYTES)
    return hashlib.sha256(os.pread(descriptor, length - start, start)).hexdigest()


def _write(descriptor: int, data: bytes) -> None:
    """Append all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
