"""The files of a folder, one after the other, in the order of their names."""

import contextlib
import os
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

import structlog

from espha.adapters.config import Held
from espha.adapters.file_input.content import Moved
from espha.adapters.file_input.position import Place, Position
from espha.adapters.file_input.reading import (
    Reading,
    SourceRow,
    Stillness,
    goes_on,
    not_complete,
    open_reading,
    read_on,
)
from espha.adapters.file_input.source import Rows, placed
from espha.adapters.file_input.spec import InputFile

_SCAN_S: Final = 1.0
_LOG = structlog.get_logger()


class SourceFolder:
    """Reads the rows of a folder's files behind a position; call `poll` again and again.

    A file ends when it has stood still for a while. The next one is that of the lowest name above;
    a file that comes with a lower name is too late, and a log line says so.
    """

    def __init__(
        self,
        file: InputFile,
        position: Position,
        clock: Callable[[], float] = time.monotonic,
        moved: Moved = lambda: None,
    ) -> None:
        """Read the files in `file.path` on; `clock` counts seconds; see `Moved`."""
        self._file, self._clock, self._folder, self._moved = file, clock, file.path, moved
        self._adapter = position.adapter
        self._now: Reading | None = None
        self._names: list[str] = []
        self._known: set[str] | None = None
        self._scanned: float | None = None
        self._empty: dict[str, Stillness] = {}
        self._set(position)

    @property
    def position(self) -> Position:
        """Where the next poll goes on."""
        place = self._now.place if self._now else self._place
        return Position(self._adapter, str(self._folder / self._name), place)

    def look(self) -> None:
        """Open the file that is read, where that can be done."""
        with contextlib.suppress(OSError, Held):
            self._open()

    def advance(self, position: Position) -> None:
        """Go to a position that another adapter has published."""
        reached = False
        with contextlib.suppress(OSError):
            same = position.file.rpartition("/")[2] == self._name
            reached = bool(same and self._now and self._now.advance(position.place))
        if not reached:
            self.close()
            self._set(position)
            self.look()

    def poll(self) -> Rows:
        """Return the rows that are complete now, at most 256 kB of them; often none.

        Raises:
            Held: a file is not what was read, or is not complete; it has to be waited for.
            OSError: a file or the folder cannot be read.
        """
        if self._now is None:
            self._open()
        now = self._now
        if now is None:
            return []
        if not now.same():
            self.close()
            return []
        before = now.offset
        let_go = partial(self._let_go_at, now.place)
        still = now.still_s() >= self._file.settle_s
        final = still and now.content.whole() and not self._file.growing
        found = read_on(now, self._file, let_go, final=final)
        if self._now and not found and now.offset == before and still:
            self._finish(now)
        return self._rows(found)

    def behind(self) -> int:
        """Return how many bytes on the disk were not read, of the files that are known.

        Raises:
            OSError: the folder cannot be read.
        """
        later = 0
        for name in self._above():
            with contextlib.suppress(FileNotFoundError):
                later += (self._folder / name).stat().st_size
        return later + (self._now.behind() if self._now else 0)

    def close(self) -> None:
        """Let go of the file; the next poll opens it again."""
        if self._now:
            self._let_go_at(self._now.place)

    def _set(self, position: Position) -> None:
        self._place = position.place
        begun = position.place.offset or position.place.generation > 1
        self._name = position.file.rpartition("/")[2] if begun else ""
        self._finished = not begun

    def _rows(self, found: list[SourceRow]) -> Rows:
        return placed(found, self.position) if found else []

    def _let_go_at(self, place: Place) -> None:
        now, self._now, self._place = self._now, None, place
        if now:
            now.close()

    def _finish(self, now: Reading) -> None:
        """Go behind a file that stands still.

        Raises:
            Held: it is not complete.
        """
        if not now.content.whole():
            self._wait_for_rest(now)
            return
        rest = now.rest()
        if rest:
            _LOG.warning(
                "a file ends without a newline; what stands behind its last line is not published",
                file=str(self._folder / self._name),
                bytes=rest,
            )
        self.close()
        self._finished = True

    def _wait_for_rest(self, now: Reading) -> None:
        """Look whether another file has its name by now: that one may be whole."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat((self._folder / self._name).stat(), now.content.stat()):
                raise Held(not_complete(self._name))
        self.close()

    def _open(self) -> None:
        """Open the file to read, if there is one."""
        if not self._finished and self._resume():
            return
        for name in self._above():
            with contextlib.suppress(FileNotFoundError):
                following = self._opened(name, self._place.generation + bool(self._name))
                if following is None:
                    if self._stays_empty(name):
                        continue
                    return  # it is being written
                _LOG.info("reads the next file", file=str(self._folder / name))
                self._pass_empty(name)
                self._name, self._finished = name, False
                self._now, self._place = following, following.place
                return

    def _opened(self, name: str, generation: int) -> Reading | None:
        path = self._folder / name
        return open_reading(path, self._file, generation, self._clock, self._moved)

    def _stays_empty(self, name: str) -> bool:
        """Tell whether a file without a byte has ended, as any file ends that stands still.

        Raises:
            Held: it has a byte, and is the mere beginning of one that is compressed.
        """
        stat = (self._folder / name).stat()
        still = self._empty.setdefault(name, Stillness(self._clock))
        if still.look((stat.st_size, stat.st_mtime_ns)) < self._file.settle_s:
            return False
        if stat.st_size:
            raise Held(not_complete(name))
        return True

    def _pass_empty(self, following: str) -> None:
        """Say which files were empty; they need no position: who starts anew passes them again."""
        passed = sorted(name for name in self._empty if name < following)
        if passed:
            _LOG.warning(
                "files are empty, and have stood still: the next one is read, and what is written "
                "to them later is not",
                files=passed[:10],
                count=len(passed),
            )
        self._empty.clear()

    def _resume(self) -> bool:
        """Go on in the file of the position; False: there is nothing more in it.

        Raises:
            Held: it is not what was read.
        """
        place = self._place
        try:
            reading = self._opened(self._name, place.generation)
        except FileNotFoundError:
            if place.marks and place.marks.end:
                self._finished = True  # it was read to its end, and somebody has removed it
                return False
            text = f"{self._name} is gone, and was read up to byte {place.offset} only; put it back"
            raise Held(text) from None
        if reading and goes_on(reading, place):
            self._now = reading
            return True
        raise Held(
            f"{self._name} is not what was read of it, up to byte {place.offset}; put it back, or "
            "give new files higher names"
        )

    def _above(self) -> list[str]:
        """Return the names behind the one that was read last, as of lately."""
        now = self._clock()
        if self._scanned is None or now - self._scanned >= _SCAN_S or not self._names:
            self._scanned = now
            self._scan()
        self._names = [name for name in self._names if name > self._name]
        return self._names

    def _scan(self) -> None:
        try:
            with os.scandir(self._folder) as entries:
                names = {
                    entry.name
                    for entry in entries
                    if fnmatchcase(entry.name, self._file.pattern) and entry.is_file()
                }
        except FileNotFoundError:
            names = set()
        known = names if self._known is None else self._known
        late = {name for name in names - known if name < self._name}
        if late:
            _LOG.error(
                "files have come with names below the one that was read last; they are not read",
                files=sorted(late)[:10],
                count=len(late),
                last=self._name,
            )
        self._known, self._names = names, sorted(names)
