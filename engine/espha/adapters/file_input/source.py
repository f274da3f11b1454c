"""A CSV file that others write: read on from a position, through all its rotations."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import structlog

from espha.adapters.config import Held
from espha.adapters.file_input.content import Moved
from espha.adapters.file_input.kin import rotated, with_inode
from espha.adapters.file_input.position import Place, Position, RowPosition
from espha.adapters.file_input.reading import (
    Fit,
    Reading,
    SourceRow,
    closed_on_error,
    goes_on,
    not_complete,
    open_reading,
    read_on,
)
from espha.adapters.file_input.spec import InputFile

_LOG = structlog.get_logger()
_LOOK_S = 1.0

Rows = list[tuple[SourceRow, Position | RowPosition]]
"""Rows, each with the position behind it."""


class SourceFile:
    """Reads the rows behind a position; call `poll` again and again.

    A file that is rotated away is first read to its end, which counts when it has stood still for
    a while. It stays open: what is written to it later comes, too, beside the rows of the file that
    has taken its place.
    """

    def __init__(
        self,
        file: InputFile,
        position: Position,
        clock: Callable[[], float] = time.monotonic,
        moved: Moved = lambda: None,
    ) -> None:
        """Read `file` on from a position; `clock` counts seconds; see `Moved`."""
        self._file, self._clock, self._moved = file, clock, moved
        self._path = file.path
        self._adapter = position.adapter
        self._place, self._late = position.place, position.before
        self._now: Reading | None = None
        self._before: Reading | None = None
        self._missing = False
        self._goal: Position | None = None
        self._looked = -_LOOK_S

    @property
    def position(self) -> Position:
        """Where the next poll goes on."""
        if self._goal:
            return self._goal
        before = self._before.place if self._before else self._late
        place = self._now.place if self._now else self._place
        return Position(self._adapter, str(self._path), place, before)

    def look(self) -> None:
        """Open the file, where that can be done, so that the position says which file it is."""
        if self._now is None and self._clock() - self._looked >= _LOOK_S:
            self._looked = self._clock()
            with contextlib.suppress(OSError, Held):
                self._open()

    def advance(self, position: Position) -> None:
        """Go to a position that another adapter has published, or as far as this file goes."""
        self._goal = position
        with contextlib.suppress(OSError):
            here = self._now and self._now.generation == position.place.generation
            if self._now and here and not self._now.reaches(position.place):
                return  # the bytes are not here yet
        self._reach(position)
        self.look()

    def _reach(self, goal: Position) -> None:
        self._goal, reached, late = None, False, False
        with contextlib.suppress(OSError):
            reached = self._now is not None and self._now.advance(goal.place)
            late = bool(self._before and goal.before and self._before.advance(goal.before))
        if not reached:
            self._let_go()
        if self._before and not late:
            self._before.close()
            self._before = None
        self._place, self._late = goal.place, goal.before

    def poll(self) -> Rows:
        """Return the rows that are complete now, at most 256 kB of them; often none.

        Raises:
            Held: the file is not what was read, or is not complete; it has to be waited for.
            OSError: the file is there but cannot be read.
        """
        if self._goal:
            self._reach(self._goal)
        if self._now and not self._now.same():
            self._let_go()
        if self._now is None:
            self._open()
        late = self._read_late()
        if late or self._now is None:
            return late
        now, before = self._now, self._now.offset
        still = now.still_s() >= self._file.settle_s
        final = still and not self._file.growing and now.content.whole()
        found = self._read(now, final)
        if self._now is now and not found and now.offset == before:
            self._follow(now, still)
        return self._rows(found)

    def _read(self, now: Reading, final: bool) -> list[SourceRow]:
        """Return rows of a file, unless another one has to be read first."""
        unread = now.line <= self._file.header_lines
        let_go = partial(self._let_go_at, now.place)
        found = read_on(now, self._file, let_go, final=final)
        try:
            return [] if found and unread and self._went_before(now) else found
        except OSError:
            let_go()
            raise

    def behind(self) -> int | None:
        """Return how many bytes on the disk were not read; None: nobody knows.

        Raises:
            OSError: the folder cannot be read.
        """
        now = self._now
        if now is None:
            there = 0 if self._place.offset else _size(self._path)
            return there if self._missing or there else None
        kin = rotated(self._path)
        names = [one.inode for one in kin]
        if now.inode in names:
            later = [one.path for one in kin[names.index(now.inode) + 1 :]] + [self._path]
        else:
            later = [] if self._is_at_its_path(now) else [self._path]
        return now.behind() + sum(map(_size, later))

    def _is_at_its_path(self, now: Reading) -> bool:
        try:
            return os.path.samestat(self._path.stat(), now.content.stat())
        except FileNotFoundError:
            return True

    def close(self) -> None:
        """Let go of the file; the next poll opens it again."""
        if self._goal:
            self._reach(self._goal)
        self._let_go()
        if self._before:
            self._late = self._before.place
            self._before.close()
            self._before = None

    def _let_go(self) -> None:
        if self._now:
            self._let_go_at(self._now.place)

    def _let_go_at(self, place: Place) -> None:
        now, self._now, self._place = self._now, None, place
        if now:
            now.close()

    def _rows(self, found: list[SourceRow]) -> Rows:
        return placed(found, self.position) if found else []

    def _open(self) -> None:
        """Find the file that goes on at the place, if there is one."""
        if self._late and not self._before:
            self._before = self._find_late(self._late)
            self._late = self._before.place if self._before else None
        self._now = self._find(self._place) or self._begin()
        if self._now is None and not self._missing:
            _LOG.info("waiting for the file to appear", file=str(self._path))
        self._missing = self._now is None

    def _find(self, place: Place) -> Reading | None:
        """Open the file that a place is in, wherever rotation has put it."""
        names = [self._path, *(kin.path for kin in rotated(self._path))]
        numbered = [path for path in self._numbered(place) if place.offset or path in names]
        found = self._first(sorted(numbered, key=lambda path: path != self._path), place)
        if found or not place.offset:
            return found
        found = self._try(self._path, place)
        if found:
            return found
        if self._fit(self._path, place) is Fit.SHORTER and self._file.truncated == "wait":
            return None
        return self._first(reversed(names[1:]), place)

    def _find_late(self, place: Place) -> Reading | None:
        """Open the file that a place is in, but not the one that has replaced it."""
        names = [*self._numbered(place), *(kin.path for kin in reversed(rotated(self._path)))]
        return self._first((path for path in names if path != self._path), place)

    def _numbered(self, place: Place) -> list[Path]:
        return with_inode(self._path, place.marks.inode) if place.marks else []

    def _first(self, paths: Iterable[Path], place: Place) -> Reading | None:
        return next(filter(None, (self._try(path, place) for path in paths)), None)

    def _try(self, path: Path, place: Place) -> Reading | None:
        reading = self._opened(path, place.generation)
        return reading if reading and goes_on(reading, place) else None

    def _fit(self, path: Path, place: Place) -> Fit | None:
        reading = self._opened(path, place.generation)
        if reading is None:
            return None
        try:
            return reading.resume(place)
        finally:
            reading.close()

    def _opened(self, path: Path, generation: int) -> Reading | None:
        try:
            return open_reading(path, self._file, generation, self._clock, self._moved)
        except FileNotFoundError:
            return None

    def _begin(self) -> Reading | None:
        """Begin with a file: the first one, or one that is another one than what was read.

        Raises:
            Held: it may be the one that was read, or may become it.
        """
        place = self._place
        if not place.offset:
            return self._opened(self._path, place.generation)
        if not self._path.exists():
            return None
        fit = self._fit(self._path, place) or Fit.SHORTER  # empty, or nearly so
        if fit in (Fit.SHORTER, Fit.ALTERED) and self._file.truncated == "wait":
            raise Held(self._sentence(fit, place))
        path = self._behind_lost(place)
        _LOG.warning(
            "this is another file than the one that was read: it is read from its beginning",
            file=str(path),
            generation=place.generation + 1,
            read_up_to=place.offset,
        )
        return self._opened(path, place.generation + 1)

    def _behind_lost(self, place: Place) -> Path:
        """Return the first file that came behind the one of a place, which is gone.

        Rotation has removed that one, and perhaps more; what is left was written to later.
        """
        changed = place.marks.changed if place.marks else 0
        kin = rotated(self._path) if changed else []
        before = self._before.inode if self._before else _inode(self._late)
        names = [one.inode for one in kin]
        unread = kin[names.index(before) + 1 :] if before in names else kin
        return next((one.path for one in unread if _changed(one.path) > changed), self._path)

    def _sentence(self, fit: Fit, place: Place) -> str:
        advice = "put it back, or set truncated to new to read it from its beginning"
        if fit is Fit.ALTERED:
            return f"it begins like what was read, but was changed before byte {place.offset}; " + (
                advice
            )
        with contextlib.suppress(OSError):
            size = self._path.stat().st_size
            return (
                f"{place.offset} bytes were read, and it has {size} bytes on the disk: waiting "
                f"until it is whole again; {advice}"
            )
        return f"it has less than the {place.offset} bytes that were read; {advice}"

    def _follow(self, now: Reading, still: bool) -> None:
        """Go on to the file that has taken the place of one that is read to its end.

        Raises:
            Held: it stands still without an end.
        """
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return  # keep what is open until another file is there
        if os.path.samestat(there, now.content.stat()):
            if not self._file.growing:
                self._check_end(now, still)
            return
        kin = rotated(self._path)
        names = [one.inode for one in kin]
        if now.inode not in names and (now.offset or not now.content.whole()):
            copy = self._try(self._path, now.place)
            if copy:
                now.close()
                self._now = copy
                return
        self._check_end(now, still)
        if not still:
            return
        later = kin[names.index(now.inode) + 1 :] if now.inode in names else []
        for path in (*(one.path for one in later), self._path):
            following = self._opened(path, now.generation + 1)
            if following is None:
                continue
            with closed_on_error(following):
                if [one.path for one in rotated(self._path)] == [one.path for one in kin]:
                    self._switch(now, following, path)
                    return
            following.close()
            return

    def _check_end(self, now: Reading, still: bool) -> None:
        if still and not now.content.whole():
            raise Held(not_complete(self._path.name))

    def _went_before(self, now: Reading) -> bool:
        """Go back to a file that rotation has put between the last one and this one meanwhile.

        Nothing was published of a file that is copied and truncated then: look when it was read.
        """
        kin = rotated(self._path)
        names = [one.inode for one in kin]
        if self._before is None or self._before.inode not in names:
            return False
        for one in kin[names.index(self._before.inode) + 1 :]:
            if one.inode == now.inode:
                return False
            between = self._opened(one.path, now.generation)
            if between:
                now.close()
                self._now = between
                return True
        return False

    def _switch(self, now: Reading, following: Reading, path: Path) -> None:
        _LOG.warning(
            "the file was replaced: the new one is read from its beginning",
            file=str(path),
            generation=following.generation,
        )
        if self._before:
            self._drop(self._before)
        self._before, self._now = now, following

    def _drop(self, before: Reading) -> None:
        rest = before.rest()
        if rest:
            _LOG.warning(
                "a file that was replaced ends without a newline; what stands behind its last "
                "line is not published",
                file=str(self._path),
                generation=before.generation,
                offset=before.offset,
                bytes=rest,
            )
        before.close()

    def _read_late(self) -> Rows:
        """Return rows that were written to the file before this one after it was replaced."""
        before = self._before
        if before is None or not before.content.stat().st_size:
            return []
        still, kept = before.still_s(), before.place
        try:
            found = (
                before.read(self._file, self._file.settle_s, final=False) if before.same() else None
            )
        except OSError:
            found = None
        if found is None:
            before.close()
            self._before, self._late = None, kept
            return []
        if not found and still >= self._file.settle_s and not before.content.stat().st_nlink:
            self._drop(before)
            self._before = None
        return self._rows_before(found)

    def _rows_before(self, found: list[SourceRow]) -> Rows:
        if not found:
            return []
        last = self.position
        light = last.of_row(last.place.line, last.place.offset)
        return [*((row, light) for row in found[:-1]), (found[-1], last)]


def placed(found: list[SourceRow], last: Position) -> Rows:
    """Return rows of one file with the positions behind them; `last` is that of the last one."""
    return [*((row, last.of_row(row.line, row.offset)) for row in found[:-1]), (found[-1], last)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _changed(path: Path) -> int:
    """Return when a file was written to last, ns since 1970; 0: it is gone."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _inode(place: Place | None) -> int:
    return place.marks.inode if place and place.marks else 0
