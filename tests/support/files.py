"""What tests of file sources share: a clock that is set, and rows without their places."""

from collections.abc import Iterator
from pathlib import Path

from espha.adapters.config import Held
from espha.adapters.file_input.position import Position, RowPosition, source_position
from espha.adapters.file_input.reading import SourceRow
from espha.adapters.file_input.source import SourceFile
from espha.adapters.file_input.spec import InputFile

SETTLED = 3.0


class Clock:
    """A clock that stands until it is set on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time, s."""
        return self.now

    def settle(self) -> None:
        """Let more time pass than a file needs to stand still."""
        self.now += SETTLED


def opened(
    path: Path,
    position: Position | RowPosition | None = None,
    clock: Clock | None = None,
    **options: object,
) -> SourceFile:
    """Open a growing file, behind a position that was kept as a header."""
    file = InputFile.model_validate({"path": str(path), "growing": True, **options})
    begin = told(position) if position else source_position("memory", path)
    return SourceFile(file, begin, clock or Clock())


def told(position: Position | RowPosition) -> Position:
    """Return what a header says of a position, which is all that others know of it."""
    return Position.from_header(position.to_header())


def polled(source: SourceFile, times: int = 1) -> list[list[str]]:
    """Return the cells of the rows that come; what is held brings none."""
    return [row.columns for _ in range(times) for row in _rows(source)]


def _rows(source: SourceFile) -> Iterator[SourceRow]:
    try:
        yield from (row for row, _ in source.poll())
    except Held:
        return


def append(path: Path, data: bytes) -> None:
    """Write at the end of a file, also one that is not there yet."""
    with path.open("ab") as file:
        file.write(data)
