"""What is refused before anything starts, each in a sentence."""

import errno
from collections import namedtuple
from pathlib import Path

import pytest

from espha.local import java, up
from espha.local.demo import MODEL
from espha.local.errors import LocalError
from espha.local.jars import PROFILES, check_sums, copy_dependencies, wanted_sums
from espha.local.state import Folder, Spec, sentence
from espha.local.up import UpOptions, prepare

INPUT = "memory={}/memory.csv,header,noopcode,noautogenfield"
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def _java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "check_java", lambda: "")


def refusal(options: UpOptions) -> str:
    with pytest.raises(LocalError) as refused:
        prepare(options, lambda text: None)
    return str(refused.value)


def options(folder: Path, **changes: object) -> UpOptions:
    made: dict[str, object] = {
        "folder": folder / "d",
        "model": MODEL,
        "inputs": [INPUT.format(folder)],
        "outputs": [f"outbound={folder}/result.csv"],
        **changes,
    }
    return UpOptions(**made)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"inputs": ["nowhere=x.csv"]}, ["nowhere", "cq/memory"]),
        ({"inputs": ["sum20=x.csv"]}, ["sum20", "source window"]),
        ({"outputs": ["outbound=x.csv,json"]}, ["--output", "header=full"]),
        ({"outputs": ["outbound=/no/such/x.csv"]}, ["there is no folder /no/such"]),
        ({"inputs": ["memory=x.csv,block=5"]}, ["block", "espha run"]),
        ({"model": Path("/no/such.xml")}, ["/no/such.xml", "No such file"]),
        ({"model": None}, ["there is no deployment", "espha local up"]),
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_spec_that_cannot_be_is_named(
    tmp_path: Path, changes: dict[str, object], words: list[str]
) -> None:
    said = refusal(options(tmp_path, **changes))
    assert [word for word in words if word not in said] == []
    assert not (tmp_path / "d").exists()


def test_a_refused_model_is_named_with_element_and_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text(MODEL.read_text().replace('target="outbound"', 'target="nowhere"'))
    said = refusal(options(tmp_path, model=bad))
    assert "line" in said and "edge" in said and "nowhere" in said


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "letter.txt").write_text("dear")
    assert "is not empty" in refusal(options(tmp_path))


def test_a_full_disk_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(1 << 30, 1 << 30, 5 << 20))
    assert "only 5 MB are free" in refusal(options(tmp_path))
    assert "the disk is full" in sentence(OSError(errno.ENOSPC, "No space left on device", "f"))


def test_a_folder_in_use_is_named(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "d")
    folder.path.mkdir()
    with folder.held():
        assert folder.is_held()
        assert "a deployment runs in" in refusal(options(tmp_path))
    assert not folder.is_held()


def test_missing_packages_are_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "find_spec", lambda name: None if name == "kazoo" else object())
    assert refusal(options(tmp_path)) == "packages are missing (kazoo): pip install 'espha[engine]'"


def test_a_missing_or_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    check = java.check_java.__wrapped__
    with pytest.raises(LocalError, match="Java is missing: install a JRE"):
        check()
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019' >&2\n")
    program.chmod(0o755)
    with pytest.raises(LocalError, match="java is Java 11, and 17 or newer is needed"):
        check()


def test_maven_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalError, match="Maven is missing"):
        copy_dependencies("kafka", tmp_path / "jars")
    program = tmp_path / "mvn"
    program.write_text("#!/bin/sh\necho '[ERROR] Unknown host'\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(LocalError, match=r"jars of kafka: Unknown host .*is there a network"):
        copy_dependencies("kafka", tmp_path / "jars")


def test_a_jar_with_another_content_is_named(tmp_path: Path) -> None:
    assert all(wanted_sums(profile) for profile in PROFILES)
    name = next(iter(wanted_sums("engine")))
    (tmp_path / name).write_bytes(b"other")
    with pytest.raises(LocalError, match="is not the jar that it must be"):
        check_sums("engine", tmp_path)


def test_a_spec_survives_in_its_folder(tmp_path: Path) -> None:
    spec = Spec(
        name="d", engines=2, brokers=1, jars=tmp_path, inputs=(), outputs=(),
        ports={"kafka-0": (1, 2), "zookeeper-0": (3, 4, 5)},
    )  # fmt: skip
    Folder(tmp_path).write_spec(spec)
    assert Folder(tmp_path).spec() == spec
    assert (spec.bootstrap, spec.ports_of("zookeeper")) == ("127.0.0.1:1", [3, 4, 5])
