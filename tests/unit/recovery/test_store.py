"""The file of a snapshot: what goes in comes out, and no damage passes unnoticed."""

import errno
import io
import os
import pickle
import resource
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.recovery.plain import NotPlainError, dumps, loads
from espha.recovery.store import SnapshotError, SnapshotStore, encode, read_header, read_snapshot
from unit.recovery.samples import BODY, snapshot

FILE = b"".join(encode(snapshot()))


def test_a_snapshot_comes_back_as_it_was() -> None:
    assert read_snapshot(io.BytesIO(FILE)) == snapshot()
    assert read_header(io.BytesIO(FILE)) == snapshot().header


@given(st.integers(0, len(FILE) - 1), st.integers(1, 255))
def test_every_changed_byte_is_noticed(place: int, change: int) -> None:
    damaged = bytearray(FILE)
    damaged[place] ^= change
    with pytest.raises(SnapshotError):
        read_snapshot(io.BytesIO(damaged))


@given(st.integers(0, len(FILE)), st.integers(0, len(FILE)), st.binary(max_size=20))
def test_every_replaced_region_is_noticed(one: int, other: int, instead: bytes) -> None:
    """Bytes lost, doubled, put in: at the beginning, the end and between."""
    start, end = sorted((one, other))
    damaged = FILE[:start] + instead + FILE[end:]
    if damaged != FILE:
        with pytest.raises(SnapshotError):
            read_snapshot(io.BytesIO(damaged))


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b"", "ends too early"),
        (FILE[:-1], "ends too early"),
        (FILE + b"x", "behind its end"),
        (FILE.replace(b"snapshot 1", b"snapshot 2", 1), "format is 2, not 1"),
        (b"PK" + FILE, "does not begin"),
        (FILE[:-1] + bytes([FILE[-1] ^ 1]), "checksum of its body"),
        (FILE.replace(b'"epoch":2', b'"epoch":3', 1), "checksum of its header"),
    ],
)
def test_the_reason_is_said(damaged: bytes, reason: str) -> None:
    with pytest.raises(SnapshotError, match=reason):
        read_snapshot(io.BytesIO(damaged))


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
    with pytest.raises(NotPlainError, match="which plain data never do"):
        loads(len(pickled).to_bytes(8, "big") + packed)


@given(st.integers(0, len(BODY) - 1), st.integers(1, 255))
def test_damaged_plain_data_raise_nothing_else(place: int, change: int) -> None:
    damaged = bytearray(BODY)
    damaged[place] ^= change
    with one_more_gib(), suppress(NotPlainError):
        loads(bytes(damaged))


@contextmanager
def one_more_gib() -> Iterator[None]:
    """Damaged bytes ask for any amount of memory; on a large machine they would get it."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_the_newest_are_kept(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "deep" / "folder", keep=2)
    store.open()
    for sequence in (9, 10, 11):
        store.write(snapshot(sequence))
    assert [store.read(path).header.sequence for path in store.files()] == [11, 10]
    assert [store.read(path).header.sequence for path in store.files(before=11)] == [10]


def test_what_was_never_finished_is_removed(tmp_path: Path) -> None:
    (tmp_path / "snapshot-00000000000000000005.espha.unfinished").write_bytes(b"x")
    (tmp_path / "snapshot-five.espha").write_bytes(b"x")
    store = SnapshotStore(tmp_path)
    store.open()
    assert store.files() == []
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot-five.espha"]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SnapshotStore(tmp_path, keep=1)
    kept = store.write(snapshot(1))

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.write(snapshot(2))
    assert list(tmp_path.iterdir()) == [kept]
    assert store.read(kept) == snapshot(1)


def test_only_a_few_refused_ones_stay(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, keep=2)
    for sequence in range(5):
        store.set_aside(store.write(snapshot(sequence)))
    assert store.files() == []
    assert len(list(tmp_path.iterdir())) == 2
