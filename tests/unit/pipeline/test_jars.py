"""Which archive of classes fits which jars."""

import os
from pathlib import Path

from espha.pipeline.jars import class_path_facts


def test_jars_unpacked_anew_are_other_jars(tmp_path: Path) -> None:
    """A JVM refuses an archive made of the old ones, though path and content are the same."""
    jar = tmp_path / "one.jar"
    jar.write_bytes(b"classes")
    before = class_path_facts(tmp_path)
    assert class_path_facts(tmp_path) == before
    os.utime(jar, (1, 1))
    assert class_path_facts(tmp_path) != before


def test_each_jar_counts_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_bytes(b"a")
    before = class_path_facts(tmp_path)
    (tmp_path / "notes.txt").write_bytes(b"n")
    assert class_path_facts(tmp_path) == before
    (tmp_path / "b.jar").write_bytes(b"b")
    assert class_path_facts(tmp_path) != before
