"""The file of a snapshot: what goes in comes out, and no damage passes unnoticed."""

import errno
import io
import os
import pickle
import resource
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.recovery.plain import NotPlainError, digest, dumps, loads, write
from espha.recovery.store import (
    DIVERGED,
    DOUBTED,
    Header,
    SnapshotError,
    SnapshotStore,
    check,
    copy,
    read_header,
    verify,
)
from espha.windows.shared.one_by_one import OneByOne
from unit.recovery.samples import BODY, MODEL, body_of, store, written


@cache
def file() -> bytes:
    """A whole snapshot's file."""
    with TemporaryDirectory() as folder:
        return written(SnapshotStore(Path(folder))).path.read_bytes()


FILE = file()


def read(content: bytes) -> tuple[Header, int]:
    return verify(io.BytesIO(content))


def test_a_snapshot_comes_back_as_it_was(tmp_path: Path) -> None:
    made = written(SnapshotStore(tmp_path))
    assert check(made.path) == made
    with made.path.open("rb") as source:
        assert read_header(source) == made.header
    assert body_of(made) == BODY
    copied = copy(io.BytesIO(FILE), tmp_path / "copy")
    assert (copied.header, body_of(copied)) == (made.header, BODY)


@given(st.integers(0, len(FILE) - 1), st.integers(1, 255))
def test_every_changed_byte_is_noticed(place: int, change: int) -> None:
    damaged = bytearray(FILE)
    damaged[place] ^= change
    with pytest.raises(SnapshotError):
        read(bytes(damaged))


@given(st.integers(0, len(FILE)), st.integers(0, len(FILE)), st.binary(max_size=20))
def test_every_replaced_region_is_noticed(one: int, other: int, instead: bytes) -> None:
    """Bytes lost, doubled, put in: at the beginning, the end and between."""
    start, end = sorted((one, other))
    damaged = FILE[:start] + instead + FILE[end:]
    if damaged != FILE:
        with pytest.raises(SnapshotError):
            read(damaged)


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b"", "ends too early"),
        (FILE[:-1], "ends too early"),
        (FILE + b"x", "behind its end"),
        (FILE.replace(b"snapshot 2", b"snapshot 1", 1), "format is 1, not 2"),
        (b"PK" + FILE, "does not begin"),
        (FILE[:-1] + bytes([FILE[-1] ^ 1]), "checksum of its body"),
        (FILE.replace(b'"epoch":2', b'"epoch":3', 1), "checksum of its header"),
    ],
)
def test_the_reason_is_said(damaged: bytes, reason: str) -> None:
    with pytest.raises(SnapshotError, match=reason):
        read(damaged)


def test_a_body_larger_than_memory_passes_through(tmp_path: Path) -> None:
    """Neither checking nor copying holds more than a part of it."""
    made = written(SnapshotStore(tmp_path), body=bytes(64 << 20))
    with one_more(16 << 20):
        check(made.path)
        with made.path.open("rb") as source:
            copy(source, tmp_path / "copy")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.binary(),
    lambda inner: st.lists(inner)
    | st.tuples(inner, inner)
    | st.dictionaries(st.text() | st.integers(), inner),
)  # fmt: skip


@given(PLAIN)
def test_plain_data_come_back_exactly(data: Any) -> None:
    again = loads(dumps(data))
    assert again == data
    assert repr(again) == repr(data)  # also types and the order of dicts


class Calls:
    """Pickles as a call, as an attacker's bytes would."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return (os.system, ("true",))


@pytest.mark.parametrize("data", [Calls(), deque([1]), int, Path("x")])
def test_what_is_not_plain_is_neither_written_nor_read(data: Any) -> None:
    with pytest.raises(NotPlainError):
        dumps({"state": [data]})
    pickled = pickle.dumps(data)
    packed = pa.Codec("zstd").compress(pickled, asbytes=True)
    sizes = len(pickled).to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    with pytest.raises(NotPlainError, match="which plain data never do"):
        loads(sizes + packed)


def test_parts_are_made_one_by_one() -> None:
    """Neither writing nor digesting holds more than some of them."""
    many = OneByOne(lambda: ((number, str(number), 0.5) for number in range(300_000)))
    with one_more(8 << 20):
        digest({"rows": many})
    assert digest({"rows": many}) == write({"rows": many}, lambda part: None).digest
    few = OneByOne(lambda: iter([(1, "a"), (2, "b")]))
    assert loads(dumps((few, few))) == ([(1, "a"), (2, "b")], [(1, "a"), (2, "b")])


@given(PLAIN)
def test_equal_data_have_the_same_bytes(data: Any) -> None:
    """Whatever objects are shared: those that are read share none, or others."""
    shared = pickle.loads(pickle.dumps((data, data)))  # noqa: S301 - our own bytes
    assert dumps((data, data)) == dumps((data, loads(dumps(data)))) == dumps(shared)
    assert digest(loads(dumps(data))) == digest(data)


def test_other_orders_and_types_have_other_digests() -> None:
    data: list[Any] = [{1: 2, 3: 4}, {3: 4, 1: 2}, (1,), (1.0,), (True,), [1], (0.0,), (-0.0,)]
    assert len({digest(each) for each in data}) == len(data)


def test_what_holds_itself_is_not_written() -> None:
    data: list[Any] = []
    data.append(data)
    with pytest.raises(NotPlainError, match="cyclic"):
        dumps(data)


@given(st.integers(0, len(BODY) - 1), st.integers(1, 255))
def test_damaged_plain_data_raise_nothing_else(place: int, change: int) -> None:
    damaged = bytearray(BODY)
    damaged[place] ^= change
    with one_more(1 << 30), suppress(NotPlainError):
        loads(bytes(damaged))


@contextmanager
def one_more(size: int) -> Iterator[None]:
    """Allow so many bytes of memory more, on a machine as large as it may be."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_the_newest_are_kept(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "deep" / "folder", keep=2)
    store.open()
    for sequence in (9, 10, 11):
        written(store, sequence)
    assert [check(path).header.sequence for path in store.files()] == [11, 10]
    assert [check(path).header.sequence for path in store.files(before=11)] == [10]


def test_what_is_finished_meanwhile_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes it may end a moment after its engine, and have renamed it by then."""
    listed = [tmp_path / "snapshot-00000000000000000005.espha.unfinished"]
    monkeypatch.setattr(Path, "glob", lambda *_: listed)
    SnapshotStore(tmp_path).open()
    assert not list(tmp_path.iterdir())


def test_what_was_never_finished_is_removed(tmp_path: Path) -> None:
    (tmp_path / "snapshot-00000000000000000005.espha.unfinished").write_bytes(b"x")
    (tmp_path / "snapshot-five.espha").write_bytes(b"x")
    store = SnapshotStore(tmp_path)
    store.open()
    assert store.files() == []
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot-five.espha"]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SnapshotStore(tmp_path, keep=1)
    kept = written(store, 1)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        written(store, 2)
    with pytest.raises(OSError, match="No space left"):
        store.take_in(io.BytesIO(FILE), "peer")
    assert list(tmp_path.iterdir()) == [kept.path]
    assert check(kept.path) == kept


def test_a_peers_snapshot_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    with pytest.raises(SnapshotError, match="ends too early"):
        store.take_in(io.BytesIO(FILE[:-1]), "10.0.0.1:8080")
    assert list(tmp_path.iterdir()) == []
    kept = store.take_in(io.BytesIO(FILE), "10.0.0.1:8080")
    assert store.files() == [kept.path]
    assert body_of(kept) == BODY


def test_only_a_few_refused_ones_stay(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, keep=2)
    for sequence in range(5):
        store.set_aside(written(store, sequence).path)
    assert store.files() == []
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_doubted_is_kept_until_another_one_is_written(tmp_path: Path) -> None:
    """The one that was tried longest ago comes first; other models' stay."""
    other = written(SnapshotStore(tmp_path), 8, model="b" * 64, since=5)
    own = store(tmp_path, 3, 6, 9).of(MODEL)
    for place, path in enumerate([*own.files(), other.path]):
        own.set_aside(path, DOUBTED if place != 1 else DIVERGED)
        os.utime(next(tmp_path.glob(f"{path.name}.*")), (place, place))
    assert own.files() == []
    kept = own.last_resort([DOUBTED, DIVERGED])
    assert [check(path).header.sequence for path in kept] == [9, 6, 3]
    assert [check(path).header.sequence for path in own.last_resort([DOUBTED])] == [9, 3]
    assert [check(path).header.sequence for path in own.last_resort([DOUBTED], 9)] == [3]
    own.set_aside(kept[0], DOUBTED)
    again = own.last_resort([DOUBTED])
    assert [check(path).header.sequence for path in again] == [3, 9]
    written(own, 12)
    assert own.last_resort([DOUBTED, DIVERGED]) == []
    left = own.of(other.header.model).last_resort([DOUBTED])
    assert [check(path).header.sequence for path in left] == [8]
