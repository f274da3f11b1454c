"""The cache: names made of ingredients, and nothing half built."""

from pathlib import Path

import pytest

from tools.offline_cluster import cache


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of the test's own."""
    monkeypatch.setenv("ESPHA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_digest_tells_ingredients_apart() -> None:
    """Moving a character from one ingredient to the next is another digest."""
    assert cache.digest("ab", "c") != cache.digest("a", "bc")
    assert cache.digest("ab", "c") == cache.digest("ab", "c")


def test_digest_of_a_directory_does_not_depend_on_its_place(tmp_path: Path) -> None:
    for place in ("one", "two"):
        (tmp_path / place / "sub").mkdir(parents=True)
        (tmp_path / place / "sub" / "file").write_text("x")
    assert cache.digest(tmp_path / "one") == cache.digest(tmp_path / "two")
    (tmp_path / "two" / "sub" / "file").write_text("y")
    assert cache.digest(tmp_path / "one") != cache.digest(tmp_path / "two")


def test_digest_does_not_see_compiled_python(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = 1")
    before = cache.digest(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "m.pyc").write_bytes(b"\0")
    assert cache.digest(tmp_path) == before


def test_once_builds_once() -> None:
    builds: list[Path] = []

    def build(path: Path) -> None:
        builds.append(path)
        (path / "result").write_text("done")

    first = cache.once("thing", "0123abcd", build)
    second = cache.once("thing", "0123abcd", build)
    assert first == second
    assert (first / "result").read_text() == "done"
    assert len(builds) == 1


def test_an_interrupted_build_leaves_nothing(empty_cache: Path) -> None:
    def interrupted(path: Path) -> None:
        (path / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.once("thing", "0123abcd", interrupted)
    assert [p.name for p in empty_cache.iterdir()] == [".thing.lock"]
    assert cache.once("thing", "0123abcd", lambda path: None).is_dir()


def test_once_removes_only_its_own_outdated_results(empty_cache: Path) -> None:
    kept = cache.once("thing-other", "0123abcd", lambda path: None)
    old = cache.once("thing", "0123abcd", lambda path: None)
    new = cache.once("thing", "4567cdef", lambda path: None)
    assert (old.exists(), new.exists(), kept.exists()) == (False, True, True)
