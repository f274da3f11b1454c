"""The result file: exact after a death at any moment."""

import errno
import os
from pathlib import Path

import pytest

from espha.adapters.config import ConfigError
from espha.adapters.file_output.target import TargetFile


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.csv"


def opened(path: Path, topic_id: str = "id", *, follow: bool = False) -> TargetFile:
    return TargetFile(path, "topic", topic_id, follow=follow)


def test_lines_and_offset_survive_a_restart(path: Path) -> None:
    target = opened(path)
    target.append([b"header"], 0)
    target.append([b"a", b"b"], 7)
    target.close()
    again = opened(path)
    assert path.read_bytes() == b"header\na\nb\n"
    assert (again.position.offset, again.position.length) == (7, 11)
    again.close()


@pytest.mark.parametrize("dies_in", ["write", "pwrite", "fsync", "replace", "open"])
def test_a_death_at_any_system_call_leaves_the_file_exact(
    path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    """Whatever call is the last one, the next process writes each line once."""
    lines = [b"line %d" % number for number in range(6)]
    for moment in range(12):
        countdown = iter(range(moment, -1, -1))
        owner = Path if dies_in == "replace" else os
        real = getattr(owner, dies_in)

        def deadly(*args: object, real: object = real, left: object = countdown) -> object:
            if next(left, 0) == 0:  # type: ignore[call-overload]
                raise Died
            return real(*args)  # type: ignore[operator]

        folder = path.parent / f"{dies_in}{moment}"
        folder.mkdir()
        file = folder / "out.csv"
        with monkeypatch.context() as patch:
            patch.setattr(owner, dies_in, deadly)
            with pytest.raises(Died):
                write_on(file, lines + [b"never reached"] * 20)
        write_on(file, lines)
        content = file.read_bytes().splitlines()
        assert content[: len(lines)] == lines
        assert set(content[len(lines) :]) <= {b"never reached"}


def write_on(file: Path, lines: list[bytes]) -> None:
    """Do what the adapter does: open, go on behind the recorded offset."""
    target = opened(file)
    try:
        for offset in range(target.position.offset, len(lines)):
            target.append([lines[offset]], offset + 1)
    finally:
        target.close()


def test_no_space_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a write, then "no space": the next try writes the line once."""
    target = opened(path)
    target.append([b"a"], 1)
    real = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if path.stat().st_size > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            target.append([b"bbbbbbbb"], 2)
    target.append([b"bbbbbbbb"], 2)
    target.close()
    assert path.read_bytes() == b"a\nbbbbbbbb\n"


def test_two_adapters_never_write_one_file(path: Path) -> None:
    first = opened(path)
    with pytest.raises(BlockingIOError):
        opened(path)
    first.close()
    opened(path).close()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda path, position: position.unlink(), "was not written by an output adapter"),
        (lambda path, position: position.write_text("{"), "is not an output adapter's position"),
        (lambda path, position: path.write_bytes(b"a"), "has 1 bytes, but the adapter wrote 2"),
        (lambda path, position: path.unlink(), "has 0 bytes, but the adapter wrote 2"),
    ],
    ids=["no position", "broken position", "shorter", "gone"],
)
def test_a_file_that_does_not_fit_its_position_is_refused(
    path: Path, spoil: object, sentence: str
) -> None:
    assert callable(spoil)
    target = opened(path)
    target.append([b"a"], 1)
    target.close()
    spoil(path, path.with_name("out.csv.position"))
    with pytest.raises(ConfigError, match=sentence):
        opened(path)


def test_another_topic_of_the_same_name_is_noticed(path: Path) -> None:
    opened(path, "first").close()
    with pytest.raises(ConfigError, match="another topic"):
        opened(path, "second")


@pytest.mark.parametrize("left", [0, 4], ids=["empty", "shorter"])
def test_a_file_cut_under_the_adapter_is_never_filled_with_nuls(path: Path, left: int) -> None:
    target = opened(path)
    target.append([b"row-1", b"row-2"], 2)
    os.truncate(path, left)
    with pytest.raises(ConfigError, match=f"has {left} bytes, but the adapter wrote 12"):
        target.append([b"row-3"], 3)
    assert path.read_bytes() == b"row-1"[:left]
    assert target.position.offset == 2
    target.close()


def test_a_file_cut_in_the_middle_of_an_append_gets_no_nuls_and_no_position(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is looked at before a write, the file can be cut between the look and the write."""
    target = opened(path)
    target.append([b"row-1", b"row-2"], 2)
    with monkeypatch.context() as patch:
        for name in ("write", "pwrite"):
            real = getattr(os, name)

            def cut_first(*args: object, real: object = real) -> object:
                os.truncate(path, 0)
                return real(*args)  # type: ignore[operator]

            patch.setattr(os, name, cut_first)
        with pytest.raises(ConfigError, match="but the adapter wrote"):
            target.append([b"row-3"], 3)
    assert b"\0" not in path.read_bytes()
    assert target.position.offset == 2
    target.close()


def test_a_file_that_is_moved_away_is_followed_by_a_new_one(path: Path) -> None:
    """As log rotation does it: nothing is written any more into a file that nobody sees."""
    target = opened(path)
    target.append([b"row-1"], 1)
    moved = path.with_name("out.csv.1")
    path.rename(moved)
    target.append([b"row-2"], 2)
    target.append([b"row-3"], 3)
    target.close()
    assert moved.read_bytes() == b"row-1\n"
    assert path.read_bytes() == b"row-2\nrow-3\n"
    write_on(path, [b"row-1", b"row-2", b"row-3", b"row-4"])
    assert path.read_bytes() == b"row-2\nrow-3\nrow-4\n"


def test_a_new_empty_file_in_the_place_of_a_moved_one_is_written_to(path: Path) -> None:
    target = opened(path)
    target.append([b"row-1"], 1)
    path.rename(path.with_name("out.csv.1"))
    path.touch()
    target.append([b"row-2"], 2)
    target.close()
    assert path.read_bytes() == b"row-2\n"


def test_a_file_moved_away_while_no_adapter_ran_is_followed_by_a_new_one(path: Path) -> None:
    target = opened(path)
    target.append([b"row-1"], 1)
    target.close()
    path.rename(path.with_name("out.csv.1"))
    write_on(path, [b"row-1", b"row-2"])
    assert path.read_bytes() == b"row-2\n"


def test_a_deleted_file_is_missed_at_once(path: Path) -> None:
    target = opened(path)
    target.append([b"row-1"], 1)
    path.unlink()
    with pytest.raises(ConfigError, match="has 0 bytes, but the adapter wrote 6"):
        target.append([b"row-2"], 2)
    assert not path.exists()
    target.close()


@pytest.mark.parametrize("running", [True, False])
def test_a_deleted_file_is_followed_by_a_new_one_where_that_is_asked_for(
    path: Path, running: bool
) -> None:
    """Scripts remove the result and start the adapter again: it goes on behind what it wrote."""
    target = opened(path, follow=True)
    target.append([b"row-1"], 1, [b"header"])
    if not running:
        target.close()
    path.unlink()
    target = target if running else opened(path, follow=True)
    assert target.position.offset == 1
    target.append([b"row-2"], 2, [b"header"])
    target.close()
    assert path.read_bytes() == b"header\nrow-2\n"


def test_a_file_deleted_in_the_middle_of_an_append_has_no_position(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = opened(path, follow=True)
    target.append([b"row-1"], 1)
    real = os.write

    def deleting(descriptor: int, data: bytes) -> int:
        path.unlink()
        return real(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", deleting)
        with pytest.raises(FileNotFoundError, match="deleted"):
            target.append([b"row-2"], 2)
    target.append([b"row-2"], 2)
    target.close()
    assert path.read_bytes() == b"row-2\n"


def test_a_file_that_was_cut_is_refused_although_a_deleted_one_is_followed(path: Path) -> None:
    target = opened(path, follow=True)
    target.append([b"row-1"], 1)
    path.write_bytes(b"")
    with pytest.raises(ConfigError, match="has 0 bytes, but the adapter wrote 6"):
        target.append([b"row-2"], 2)
    target.close()


def test_a_copy_in_the_place_of_the_file_is_gone_on_with(path: Path) -> None:
    """Editors and restored volumes give the file another inode, not other rows."""
    target = opened(path)
    target.append([b"row-1"], 1)
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    target.append([b"row-2"], 2)
    target.close()
    assert path.read_bytes() == b"row-1\nrow-2\n"


@pytest.mark.parametrize("running", [True, False], ids=["running", "restarted"])
@pytest.mark.parametrize("in_place", [True, False], ids=["overwritten", "replaced"])
def test_rows_of_another_program_are_not_cut_off(path: Path, running: bool, in_place: bool) -> None:
    target = opened(path)
    target.append([b"row-1"], 1)
    if not in_place:
        path.unlink()
    foreign = b"another program's rows\n"
    path.write_bytes(foreign)
    with pytest.raises(ConfigError, match="was changed"):
        if running:
            target.append([b"row-2"], 2)
        else:
            target.close()
            opened(path)
    assert path.read_bytes() == foreign


class Clock:
    """Seconds since 1970, as the test wants them."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """Return them."""
        return self.now


def test_a_full_file_gets_its_name_and_the_next_one_begins(path: Path) -> None:
    target = opened(path)
    target.append([], 3, [b"header"])
    target.append([b"a"], 4, [b"header"])
    target.move()
    target.append([b"b"], 9, [b"header"])
    target.move()
    target.close()
    again = opened(path)
    assert again.position.offset == 9
    again.append([b"c"], 10, [b"header"])
    again.close()
    assert sorted(each.name for each in path.parent.glob("*.csv")) == [
        "out-000000000000.csv",
        "out-000000000004.csv",
        "out.csv",
    ]
    assert (path.parent / "out-000000000000.csv").read_bytes() == b"header\na\n"
    assert (path.parent / "out-000000000004.csv").read_bytes() == b"header\nb\n"
    assert path.read_bytes() == b"header\nc\n"


def test_a_file_that_is_full_is_never_written_over_another_one(path: Path) -> None:
    target = opened(path)
    target.append([b"a"], 1)
    path.with_name("out-000000000000.csv").write_bytes(b"mine")
    with pytest.raises(ConfigError, match="is there already"):
        target.move()
    target.append([b"b"], 2)
    target.close()
    assert path.read_bytes() == b"a\nb\n"


@pytest.mark.parametrize("taken", [False, True], ids=["left there", "taken away"])
@pytest.mark.parametrize("dies_in", ["write", "pwrite", "fsync", "replace", "rename", "open"])
def test_a_death_at_any_system_call_of_a_rotation_leaves_each_line_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str, taken: bool
) -> None:
    """Whatever call is the last one; and somebody takes full files away at once."""
    lines = [b"line %d" % number for number in range(6)]
    for moment in range(60):
        folder = path.parent / f"{dies_in}{moment}"
        folder.mkdir()
        (folder / "taken").mkdir()
        file = folder / "out.csv"
        with monkeypatch.context() as patch:
            patch.setattr(*deadly_after(moment, dies_in))
            try:
                write_and_rotate(file, lines)
            except Died:
                died = True
            else:
                died = False
        if taken:
            for full in folder.glob("out-*.csv"):
                full.rename(folder / "taken" / full.name)
        write_and_rotate(file, lines)
        files = sorted([*folder.rglob("out-*.csv")], key=lambda each: each.name)
        assert b"".join(each.read_bytes() for each in [*files, file]).splitlines() == lines
        if not died:
            break
    else:
        pytest.fail("there are more calls than moments")


def deadly_after(calls: int, name: str) -> tuple[object, str, object]:
    """Return what to patch so that the process ends in a system call."""
    owner = Path if name in {"replace", "rename"} else os
    real, left = getattr(owner, name), iter(range(calls))

    def deadly(*args: object) -> object:
        if next(left, None) is None:
            raise Died
        return real(*args)

    return owner, name, deadly


def write_and_rotate(file: Path, lines: list[bytes]) -> None:
    """Do what the adapter does, with two lines a file."""
    target = opened(file)
    try:
        for offset in range(target.position.offset, len(lines)):
            target.append([lines[offset]], offset + 1)
            if target.position.offset - target.position.first == 2:
                target.move()
    finally:
        target.close()


def test_age_counts_from_the_first_row_through_restarts(path: Path) -> None:
    clock = Clock()
    target = TargetFile(path, "topic", "id", now=clock)
    target.append([], 0, [b"header"])
    clock.now += 100
    assert target.age == 0
    target.append([b"a"], 1)
    target.close()
    clock.now += 60
    again = TargetFile(path, "topic", "id", now=clock)
    assert again.age == 60
    again.move()
    assert again.age == 0
    again.close()


@pytest.mark.parametrize("fails", ["pwrite", "fsync", "replace", "rename", "open", "scandir"])
def test_a_rotation_that_the_file_system_refuses_half_way_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """Each system call fails once; the adapter goes on with the same object."""
    for moment in range(60):
        folder = path.parent / f"{fails}{moment}"
        folder.mkdir()
        file = folder / "out.csv"
        target, failed = opened(file), False
        target.append([b"a"], 1)
        with monkeypatch.context() as patch:
            owner, name, deadly = deadly_after(moment, fails)
            patch.setattr(owner, name, refusing(deadly))
            try:
                target.move()
            except OSError:
                failed = True
        target.append([b"b"], 2)
        target.close()
        contents = [each.read_bytes() for each in sorted(folder.glob("out*.csv"))]
        assert b"".join(contents) == b"a\nb\n"
        if not failed:
            break
    else:
        pytest.fail("there are more calls than moments")


def refusing(deadly: object) -> object:
    """Have the system refuse instead of ending the process."""

    def refused(*args: object) -> object:
        try:
            return deadly(*args)  # type: ignore[operator]
        except Died:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None

    return refused


def test_a_position_of_the_version_before_is_understood(path: Path) -> None:
    path.write_bytes(b"a\nb\nsurplus")
    old = '{"topic": "topic", "topic_id": "id", "length": 4, "offset": 7}'
    path.with_name("out.csv.position").write_text(old)
    target = opened(path)
    assert target.position.offset == 7
    target.append([b"c"], 8)
    target.close()
    assert path.read_bytes() == b"a\nb\nc\n"
