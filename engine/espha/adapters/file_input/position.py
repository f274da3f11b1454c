"""How far files were read, as it stands in the header of a record."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from espha.protocol.status import InputProgress


@dataclass(frozen=True, slots=True)
class Marks:
    """What tells whether a file still is the one that was read, at an offset in it.

    Attributes:
        inode: number of the file; another node may have another one for the same content.
        size: bytes that the file had, as it lies on the disk.
        heads: fingerprints of its beginning, by length.
        tail: fingerprint of the bytes just before the offset.
        base: offset at which `body` begins.
        body: fingerprint of the bytes from there to the offset.
        end: nothing stood behind the offset.
        changed: when it had been written to last, ns since 1970; 0: not known.
    """

    inode: int = 0
    size: int = 0
    heads: Mapping[int, str] = field(default_factory=dict)
    tail: str = ""
    base: int = 0
    body: str = ""
    end: bool = False
    changed: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading stands in one file: behind `line` lines and `offset` bytes.

    Attributes:
        generation: 1 for the first file, one more for each that has replaced it.
        marks: of the file; None: not known.
        mark: fingerprint of beginning and end together, as versions before `marks` wrote it.
    """

    generation: int = 1
    line: int = 0
    offset: int = 0
    marks: Marks | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """How far an adapter is.

    The last record of a transaction carries it; the others carry a `RowPosition`.

    Attributes:
        adapter: its name.
        file: the file that is read.
        place: where in it.
        before: the file that was replaced by it, and that somebody may still write to.
    """

    adapter: str
    file: str
    place: Place = Place()
    before: Place | None = None

    def to_header(self) -> bytes:
        """Return the value of the `espha-source` header."""
        content = {"adapter": self.adapter, "file": self.file, **_plain(self.place)}
        if self.before:
            content["before"] = _plain(self.before)
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def from_header(cls, value: bytes) -> "Position":
        """Read a header's value back."""
        return cls.from_object(json.loads(value))

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> "Position":
        """Read it from an object of JSON, also one of another version."""
        before = found.get("before")
        return cls(
            found["adapter"], found["file"], _place(found), _place(before) if before else None
        )

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        return self.of_row(self.place.line, self.place.offset).progress(rows)

    def of_row(self, line: int, offset: int) -> "RowPosition":
        """Return the position behind another row of the same file."""
        return RowPosition(self.adapter, self.file, self.place.generation, line, offset)


class RowPosition(NamedTuple):
    """How far an adapter is behind a row that is not the last one of its transaction.

    It has what people want to know. What tells a file from another one is in the last row.
    """

    adapter: str
    file: str
    generation: int
    line: int
    offset: int

    def to_header(self) -> bytes:
        """Return the value of the `espha-source` header."""
        return b'%s"generation":%d,"line":%d,"offset":%d}' % (
            _beginning(self.adapter, self.file),
            self.generation,
            self.line,
            self.offset,
        )

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        return InputProgress(
            rows=rows,
            position=f"{Path(self.file).name}, line {self.line}, byte {self.offset}",
            line=self.line,
            offset=self.offset,
            generation=self.generation,
        )


def source_position(adapter: str, path: Path, found: Mapping[str, Any] | None = None) -> Position:
    """Return where to go on.

    Args:
        adapter: the name of the adapter.
        path: the file or folder, which may have been moved since.
        found: what `Position.to_header` wrote; None: nothing was read yet.
    """
    if found is None:
        return Position(adapter=adapter, file=str(path))
    return Position.from_object(found)


@lru_cache(maxsize=8)
def _beginning(adapter: str, file: str) -> bytes:
    names = json.dumps({"adapter": adapter, "file": file}, separators=(",", ":"))
    return names[:-1].encode() + b","


def _plain(place: Place) -> dict[str, Any]:
    content: dict[str, Any] = {
        "generation": place.generation,
        "line": place.line,
        "offset": place.offset,
    }
    if place.marks:
        content["marks"] = asdict(place.marks)
    if place.mark:
        content["mark"] = place.mark
    return content


def _place(found: Mapping[str, Any]) -> Place:
    marks = found.get("marks")
    known = {one.name: found[one.name] for one in fields(Place) if one.name in found}
    return Place(**{**known, "marks": _marks(marks) if marks else None})


def _marks(found: Mapping[str, Any]) -> Marks:
    known = {one.name: found[one.name] for one in fields(Marks) if one.name in found}
    heads = {int(length): digest for length, digest in known.pop("heads", {}).items()}
    return Marks(**known, heads=heads)
