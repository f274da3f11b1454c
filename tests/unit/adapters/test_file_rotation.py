"""Rotation in every way, with late writers, while adapters read, die and begin again."""

import contextlib
import gzip
import os
import random
import shutil
from pathlib import Path

import pytest
from backports import zstd

from espha.adapters.config import Held
from espha.adapters.file_input.source import SourceFile
from support.files import Clock, append, opened, polled, told

pytestmark = pytest.mark.usefixtures("dead_hold_nothing")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.csv"


def test_a_late_writer_of_a_renamed_file_loses_nothing(path: Path) -> None:
    """The writer learns of the rotation later than the adapter, in the middle of a line (A1 a)."""
    clock = Clock()
    with path.open("ab", buffering=0) as writer:
        writer.write(b"1,a\n2,b\n")
        source = opened(path, clock=clock)
        found = polled(source)
        writer.write(b"3,lo")
        path.rename(path.with_name("in.csv.1"))
        path.touch()
        found += polled(source, 3)
        writer.write(b"ng\n4,d\n")
        found += polled(source, 5)
    append(path, b"5,e\n")
    clock.settle()
    found += polled(source, 5)
    assert found == [["1", "a"], ["2", "b"], ["3", "long"], ["4", "d"], ["5", "e"]]


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_what_is_written_to_a_renamed_file_later_still_comes(path: Path, restart: bool) -> None:
    clock = Clock()
    append(path, b"1,a\n2,lo")
    source = opened(path, clock=clock)
    found = polled(source)
    path.rename(path.with_name("in.csv-20261123"))
    append(path, b"3,c\n")
    polled(source)
    clock.settle()
    found += polled(source, 3)
    if restart:
        source = opened(path, source.position, clock)
    append(path.with_name("in.csv-20261123"), b"ng\n")
    append(path, b"4,d\n")
    found += polled(source, 3)
    assert found == [["1", "a"], ["3", "c"], ["2", "long"], ["4", "d"]]
    assert polled(opened(path, source.position, clock), 3) == []


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("copied", [False, True], ids=["same node", "another node"])
def test_several_rotations_while_no_adapter_ran_lose_nothing(
    path: Path, suffix: str, copied: bool
) -> None:
    clock, number = Clock(), 0
    append(path, b"0,a\n1,a\n")
    source = opened(path, clock=clock)
    assert len(polled(source)) == 2
    for number in range(2, 5):
        append(path, b"%d,a\n" % number)
        for age in (2, 1):
            if (old := path.with_name(f"in.csv.{age}")).exists():
                old.rename(path.with_name(f"in.csv.{age + 1}"))
        path.rename(path.with_name("in.csv.1"))
    append(path, b"9,a\n")
    for old in path.parent.glob("in.csv.[123]") if suffix else ():
        pack = gzip.compress if suffix == ".gz" else zstd.compress
        old.with_name(old.name + suffix).write_bytes(pack(old.read_bytes()))
        old.unlink()
    if copied:
        path = Path(shutil.copytree(path.parent, path.parent / "other")) / path.name
    source = opened(path, source.position, clock)
    found = []
    for _ in range(12):
        found += polled(source)
        clock.settle()
    assert found == [["2", "a"], ["3", "a"], ["4", "a"], ["9", "a"]]


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_the_rest_of_a_file_that_was_copied_and_truncated_is_in_the_copy(
    path: Path, restart: bool
) -> None:
    clock = Clock()
    append(path, b"1,alpha,beta,gamma\n")
    source = opened(path, clock=clock)
    found = polled(source)
    append(path, b"2,alpha,beta,gamma\n3,c")
    shutil.copyfile(path, path.with_name("in.csv.1"))
    os.truncate(path, 0)
    if restart:
        source = opened(path, source.position, clock)
    found += polled(source)
    append(path, b"4,delta,epsilon,zeta,eta,theta\n")
    for _ in range(6):
        found += polled(source)
        clock.settle()
    assert [row[0] for row in found] == ["1", "2", "4"]


def test_alike_rows_in_a_renamed_file_are_told_apart_by_its_number(path: Path) -> None:
    clock = Clock()
    append(path, b"1,up\n" * 200)
    source = opened(path, clock=clock)
    assert len(polled(source, 2)) == 200
    path.rename(path.with_name("in.csv.1"))
    append(path, b"1,up\n" * 260)
    source = opened(path, source.position, clock)
    polled(source)
    clock.settle()
    assert len(polled(source, 4)) == 260


def test_files_that_only_look_alike_by_name_are_left_alone(path: Path) -> None:
    clock = Clock()
    append(path, b"1,a\n")
    source = opened(path, clock=clock)
    polled(source)
    path.rename(path.with_name("in.csv.1"))
    for name in ("in.csv.bak", "in.csv.position", "in2.csv", "in-part.csv", "in.csv.1.tmp"):
        path.with_name(name).write_bytes(b"8,wrong\n")
    append(path, b"2,b\n")
    polled(source)
    clock.settle()
    assert polled(source, 5) == [["2", "b"]]


def test_what_has_replaced_a_file_is_not_taken_for_it(path: Path) -> None:
    """Rows repeat, and the file that a late writer might write to is gone."""
    clock = Clock()
    append(path, b"1,up\n" * 100)
    source = opened(path, clock=clock)
    polled(source)
    path.rename(path.with_name("in.csv.1"))
    append(path, b"1,up\n" * 100)
    polled(source)
    clock.settle()
    assert len(polled(source, 2)) == 100
    path.with_name("in.csv.1").unlink()
    source = opened(path, source.position, clock)
    append(path, b"1,up\n" * 100)
    assert len(polled(source, 3)) == 100


def test_a_file_of_which_only_the_header_was_read_is_found_as_a_copy(path: Path) -> None:
    clock, header = Clock(), b"a long header line,with several,columns\n"
    append(path, header + b"1,a\n")
    source = opened(path, clock=clock, headerLines=1)
    found = polled(source)
    path.rename(path.with_name("in.csv.1"))
    append(path, header)
    polled(source)
    clock.settle()
    found += polled(source, 3)
    append(path, b"2,b\n")
    path.with_name("in.csv.1").rename(path.with_name("in.csv.2"))
    shutil.copyfile(path, path.with_name("in.csv.1"))
    os.truncate(path, 0)
    append(path, header + b"3,c\n")
    for _ in range(6):
        found += polled(source)
        clock.settle()
    assert [row[0] for row in found] == ["1", "2", "3"]


class Writer:
    """Writes rows in pieces, and has its file rotated; it may learn of that later."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self._path, self._chance = path, chance
        self._file = path.open("ab", buffering=0)
        self._rest = b""
        self.rows: list[list[str]] = []

    def write(self) -> None:
        """Write some bytes, which may end anywhere."""
        for _ in range(self._chance.randrange(4)):
            text = "x" * self._chance.randrange(40)
            self.rows.append([str(len(self.rows)), text])
            self._rest += f"{len(self.rows) - 1},{text}\n".encode()
        cut = self._chance.randint(0, len(self._rest))
        self._file.write(self._rest[:cut])
        self._rest = self._rest[cut:]

    def rename(self) -> None:
        """Rotate by names; the writer goes on with what it has open."""
        self.reopen()
        numbers = [number for number in range(9, 0, -1) if self._old(number).exists()]
        for number in numbers:
            self._old(number).rename(self._old(number + 1))
        self._path.rename(self._old(1))
        self._path.touch()

    def copy_and_truncate(self) -> None:
        """Rotate by copying; what is under way is written first, as it is one line."""
        self.reopen()
        for number in range(9, 0, -1):
            if self._old(number).exists():
                self._old(number).rename(self._old(number + 1))
        shutil.copyfile(self._path, self._old(1))
        os.truncate(self._path, 0)

    def reopen(self) -> None:
        """Finish the line in the file that is open, and open the one that is there now."""
        self._file.write(self._rest)
        self._rest = b""
        self._file.close()
        self._file = self._path.open("ab", buffering=0)

    def _old(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


class Topic:
    """What adapters have committed: rows, and the position behind the last one."""

    def __init__(self, path: Path, clock: Clock, chance: random.Random) -> None:
        self._path, self._clock, self._chance = path, clock, chance
        self.rows: list[list[str]] = []
        self._source = opened(path, clock=clock)
        self._standby = opened(path, clock=clock)
        self._position = self._source.position

    def poll(self) -> None:
        """Take rows as a transaction; or die before its end, or behind it."""
        try:
            found = self._source.poll()
        except Held:
            return
        if self._chance.random() < 0.1:
            self.fail_over()
        elif found:
            self.rows += [row.columns for row, _ in found]
            self._position = told(found[-1][1])
            self._standby.advance(self._position)
            if self._chance.random() < 0.1:
                self.fail_over()

    def fail_over(self) -> None:
        """Have the standby go on, or a process that has read nothing yet."""
        self._source.close()
        fresh: SourceFile = opened(self._path, self._position, self._clock)
        known = self._chance.random() < 0.5
        if known:
            self._standby.advance(self._position)
        self._source, self._standby = (self._standby, fresh) if known else (fresh, fresh)
        if not known:
            self._standby = opened(self._path, self._position, self._clock)


@pytest.mark.parametrize("seed", range(40))
def test_no_kill_and_no_rotation_loses_doubles_or_tears_a_row(path: Path, seed: int) -> None:
    """At any byte; an independent list of what was written is compared."""
    chance, clock = random.Random(seed), Clock()
    writer = Writer(path, chance)
    for _ in range(5):
        writer.write()
    writer.reopen()
    topic = Topic(path, clock, chance)
    for step in range(400):
        writer.write()
        if chance.random() < 0.5:
            topic.poll()
        clock.now += chance.random() * 0.2
        if step % 40 == 39:
            getattr(writer, chance.choice(["rename", "copy_and_truncate"]))()
    writer.reopen()
    for _ in range(200):
        clock.now += 0.5
        topic.poll()
    assert len(topic.rows) == len(writer.rows)
    assert sorted(topic.rows, key=lambda row: int(row[0])) == writer.rows


def test_what_waits_counts_each_file_behind_the_place(path: Path) -> None:
    source = opened(path)
    assert source.behind() is None
    append(path, b"1,a\n2,b\n")
    assert source.behind() == 8
    polled(source)
    assert source.behind() == 0
    append(path, b"3,c\n")
    path.rename(path.with_name("in.csv.2"))
    append(path.with_name("in.csv.1"), b"4,dd\n")
    append(path, b"5,eee\n")
    assert source.behind() == 4 + 5 + 6
    path.unlink()
    assert source.behind() == 4 + 5


def test_a_copy_on_another_volume_is_gone_on_with_though_it_is_behind(tmp_path: Path) -> None:
    """Two replicas, each with its own inode; the roles go to and fro."""
    copies = [tmp_path / volume / "in.csv" for volume in ("a", "b")]
    for copy in copies:
        copy.parent.mkdir()
        append(copy, b"0,x\n")
    clock = Clock()
    sources = [opened(copy, clock=clock) for copy in copies]
    found = polled(sources[0])
    for number in range(1, 6):
        active, standby = number % 2, 1 - number % 2
        sources[active].advance(sources[standby].position)
        append(copies[active], b"%d,x\n%d,y\n" % (number, number))
        append(copies[standby], b"%d,x\n" % number)
        found += polled(sources[active], 3)
        sources[standby].advance(sources[active].position)
        with pytest.raises(Held, match=r"trying|wait|whole"):
            sources[standby].poll()
        append(copies[standby], b"%d,y\n" % number)
    assert found == [["0", "x"], *([str(one), letter] for one in range(1, 6) for letter in "xy")]


def test_rotation_that_removed_the_file_that_was_read_left_the_next_ones_to_read(
    path: Path,
) -> None:
    """What is gone is lost; what came behind it is not, and what came before it is not doubled."""
    clock = Clock()
    older, second, third = (path.with_name(f"in.csv.{number}") for number in (4, 2, 1))
    append(older, b"0,old\n")
    append(path, b"1,a\n")
    source = opened(path, clock=clock)
    found = polled(source)
    position = source.position
    path.unlink()  # as rotation removes the oldest one
    append(second, b"2,b\n")
    append(third, b"3,c\n")
    append(path, b"4,d\n")
    changed = position.place.marks.changed if position.place.marks else 0
    for number, file in enumerate((older, second, third, path), start=-1):
        os.utime(file, ns=(changed + number, changed + number + (number >= 0)))
    source = opened(path, position, clock)
    for _ in range(6):
        found += polled(source, 2)
        clock.settle()
    assert found == [["1", "a"], ["2", "b"], ["3", "c"], ["4", "d"]]


def test_the_file_that_was_read_before_the_lost_one_is_not_read_again(path: Path) -> None:
    """Even where a late writer has written to it meanwhile."""
    clock = Clock()
    append(path, b"1,a\n")
    source = opened(path, clock=clock)
    found = polled(source)
    before = path.with_name("in.csv.1")
    path.rename(before)
    append(path, b"2,b\n")
    for _ in range(3):
        clock.settle()
        found += polled(source, 2)
    position = source.position
    source.close()
    path.unlink()
    append(path, b"3,c\n")
    changed = position.place.marks.changed if position.place.marks else 0
    os.utime(before, ns=(changed + 5, changed + 5))
    source = opened(path, position, clock)
    for _ in range(4):
        found += polled(source, 2)
        clock.settle()
    assert found == [["1", "a"], ["2", "b"], ["3", "c"]]


@pytest.mark.parametrize("growing", [False, True])
def test_a_compressed_file_without_its_end_holds_up_the_next_one_with_a_word(
    path: Path, growing: bool
) -> None:
    """One that grows may lack its end for as long as it is there."""
    clock = Clock()
    packed = gzip.compress(b"1,a\n2,b\n", mtime=0)
    append(path, packed[:-1])
    source = opened(path, clock=clock, growing=growing)
    found = polled(source)
    clock.settle()
    held = pytest.raises(Held, match=r"in\.csv stands still, and is not complete")
    with contextlib.nullcontext() if growing else held:
        assert source.poll() == []
    path.rename(path.with_name("in.csv.1"))
    append(path, b"3,c\n")
    with held:
        source.poll()
    append(path.with_name("in.csv.1"), packed[-1:])
    for _ in range(4):
        found += polled(source)
        clock.settle()
    assert found == [["1", "a"], ["2", "b"], ["3", "c"]]


@pytest.mark.parametrize("there", [12, -1], ids=["no row", "all rows"])
def test_a_compressed_file_without_its_end_can_be_replaced_by_the_whole_one(
    path: Path, there: int
) -> None:
    clock = Clock()
    packed = gzip.compress(b"1,a\n2,b\n", mtime=0)
    append(path, packed[:there])
    source = opened(path, clock=clock, growing=False)
    found = polled(source)
    clock.settle()
    with pytest.raises(Held, match="is not complete"):
        source.poll()
    append(path.with_name("new"), packed)
    path.with_name("new").replace(path)
    for _ in range(4):
        found += polled(source)
        clock.settle()
    assert found == [["1", "a"], ["2", "b"]]
