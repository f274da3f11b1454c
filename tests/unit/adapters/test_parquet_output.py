"""Datasets of Parquet files: each row once, after a death at any moment."""

import json
import os
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken
from espha.adapters.parquet_output.dataset import Dataset
from espha.adapters.parquet_output.run import Output
from espha.adapters.parquet_output.spec import OutputParquet
from support.outputs import outbound


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "result"


class Clock:
    """Seconds, as the test wants them."""

    now = 0.0

    def __call__(self) -> float:
        """Return them."""
        return self.now


def opened(
    folder: Path, rows: int = 2, topic_id: str = "id", schema: str | None = None, **more: object
) -> Output:
    place = OutputParquet.model_validate({"path": str(folder), "fileRows": rows})
    window = outbound(schema) if schema else outbound()
    return Output(place, window, Dataset(folder, "topic", topic_id), **more)  # type: ignore[arg-type]


def rows(*folders: Path) -> list[dict[str, object]]:
    found = [
        row
        for folder in folders
        for row in ds.dataset(folder, format="parquet").to_table().to_pylist()
    ]
    return sorted(found, key=lambda row: row["espha_offset"])


def write_on(folder: Path, count: int) -> None:
    """Do what the adapter does: go on behind the last offset, with records of even offsets."""
    target = opened(folder, rows=1)
    try:
        for offset in range(target.offset + target.offset % 2, 2 * count, 2):
            text = f"I,N, {offset},a," if offset != 4 else "bad"
            target.append([Taken(offset, text.encode())], offset + 1)
            target.settle()
    finally:
        target._dataset.close()


def test_every_type_comes_through(folder: Path) -> None:
    schema = "id*:int32,a:string,b:double,c:date,d:stamp,e:blob,f:array(i64),g:money,h:int64"
    target = opened(folder, schema=schema)
    target.append(
        [
            Taken(3, b'U,R, 1,"x,y",0.5,86400,1500000,AAEC,[1;;3],2.5,7'),
            Taken(9, b"D,N, 1,,,,,,,,"),
        ],
        10,
    )
    target.settle()
    assert [path.name for path in folder.glob("part-*")] == [
        "part-000000000000-000000000010.parquet"
    ]
    first, second = rows(folder)
    assert str(first["c"]) == "1970-01-02 00:00:00+00:00"
    assert str(first["d"]) == "1970-01-01 00:00:01.500000+00:00"
    assert [first[name] for name in ("espha_offset", "opcode", "flags", "id", "a", "b")] == [
        3, "U", "R", 1, "x,y", 0.5,
    ]  # fmt: skip
    assert [first[name] for name in "efgh"] == [b"\0\1\2", [1, None, 3], 2.5, 7]
    assert [second[name] for name in "abcdefgh"] == [None] * 8


def test_rows_wait_for_enough_of_them_or_for_their_time(folder: Path) -> None:
    clock = Clock()
    target = opened(folder, rows=3, now=clock)
    target.append([Taken(0, b"I,N, 1,a,"), Taken(1, b"bad")], 2)
    target.settle()
    assert list(folder.glob("part-*")) == []
    assert (target.offset, target.progress(2).rows) == (0, 0)
    clock.now = 60
    target.settle()
    assert target.offset == 2
    assert (target.progress(2).rows, target.progress(2).rejected) == (2, 1)
    target.append([Taken(at, b"I,N, 1,a,") for at in range(2, 6)], 6)
    target.settle()
    assert [row["espha_offset"] for row in rows(folder)] == [0, 2, 3, 4, 5]
    (beside,) = folder.glob("_rejected-*")
    assert json.loads(beside.read_text())["offset"] == 1


@pytest.mark.parametrize("taken", [False, True], ids=["left there", "taken away"])
@pytest.mark.parametrize("dies_in", ["fsync", "pwrite", "replace", "rename", "unlink", "open"])
def test_a_death_at_any_system_call_leaves_each_row_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str, taken: bool
) -> None:
    """Whatever call is the last one; and somebody takes files away as soon as they are there."""
    for moment in range(60):
        place, away = folder.parent / f"{dies_in}{moment}", folder.parent / f"away{moment}"
        away.mkdir()
        owner = os if dies_in in {"fsync", "pwrite"} else Path
        real, left, died = getattr(owner, dies_in), iter(range(moment)), False

        def deadly(
            *args: object, real: object = real, left: object = left, **more: object
        ) -> object:
            if next(left, None) is None:  # type: ignore[call-overload]
                raise Died
            return real(*args, **more)  # type: ignore[operator]

        with monkeypatch.context() as patch:
            patch.setattr(owner, dies_in, deadly)
            try:
                write_on(place, 7)
            except Died:
                died = True
        if taken:
            for path in place.glob("part-*"):
                path.rename(away / path.name)
        write_on(place, 8)
        found = [row["espha_offset"] for row in rows(place, away)]
        assert found == [0, 2, 6, 8, 10, 12, 14]
        aside = [line for path in place.glob("_rejected-*") for line in path.open()]
        assert [json.loads(line)["offset"] for line in aside] == [4]
        assert not list(place.glob("*.unfinished"))
        if not died:
            break
    else:
        pytest.fail("there are more calls than moments")


def test_the_files_tell_the_position_where_nothing_else_does(folder: Path) -> None:
    write_on(folder, 5)
    (folder / "_espha.position").unlink()
    dataset = Dataset(folder, "topic", "id")
    assert dataset.position.offset == 9
    dataset.close()
    with pytest.raises(ConfigError, match="another topic"):
        Dataset(folder, "topic", "other")


def test_another_topic_of_the_same_name_is_noticed(folder: Path) -> None:
    write_on(folder, 2)
    with pytest.raises(ConfigError, match="another topic"):
        Dataset(folder, "topic", "other")


def test_two_adapters_never_write_one_dataset(folder: Path) -> None:
    first = Dataset(folder, "topic", "id")
    with pytest.raises(BlockingIOError):
        Dataset(folder, "topic", "id")
    first.close()


def test_a_disk_that_is_full_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = opened(folder)
    target.append([Taken(0, b"I,N, 1,a,"), Taken(1, b"I,N, 2,a,")], 2)
    for call in ("fsync", "pwrite"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, refuse)
            with pytest.raises(OSError, match="full"):
                target.settle()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(OSError, match="full"):
            target.settle()
    target.settle()
    assert [row["espha_offset"] for row in rows(folder)] == [0, 1]


def refuse(*_: object) -> None:
    raise OSError(28, "full")


def test_a_foreign_file_is_not_written_over(folder: Path) -> None:
    target = opened(folder)
    foreign = folder / "part-000000000000-000000000002.parquet"
    foreign.write_bytes(b"mine")
    target.append([Taken(0, b"I,N, 1,a,"), Taken(1, b"I,N, 2,a,")], 2)
    with pytest.raises(ConfigError, match="is there already"):
        target.settle()
    assert foreign.read_bytes() == b"mine"


def test_what_was_set_aside_by_somebody_who_died_is_set_aside_anew(folder: Path) -> None:
    """The next one may gather other records for its file: the names need not be the same."""
    write_on(folder, 4)
    kept = next(folder.glob("_rejected-*"))
    left = folder / "_rejected-000000000007-000000000999.jsonl"
    left.write_text("{}\n")
    Dataset(folder, "topic", "id").close()
    assert kept.exists()
    assert not left.exists()
