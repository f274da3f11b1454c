"""What Docker can pull is used; what it cannot pull is built here, and one line says so."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import ROOT
from tools.offline_cluster import base, clients, command, debian, docker, golang, node


class Machine:
    """A machine whose Docker, registries and programs are said beforehand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here: set[str] = set()
        self.registry: set[str] = set()
        self.own: dict[str, tuple[Path, str]] = {}
        self.asked: list[str] = []
        self.built: list[str] = []
        monkeypatch.setattr(docker, "has", lambda tag, label=None: tag in self.here)
        monkeypatch.setattr(docker, "pulled", self._pulled)
        monkeypatch.setattr(clients, "own", lambda name: self.own.get(name, (None,))[0])
        monkeypatch.setattr(command, "answer", self._answer)
        monkeypatch.setattr(golang, "install", lambda name, package, version: Path("built", name))
        monkeypatch.setattr(node, "_build", self.built.append)

    def _pulled(self, image: str) -> bool:
        self.asked.append(image)
        return image in self.registry

    def _answer(self, program: Path, *_: str) -> str | None:
        return next((text for path, text in self.own.values() if path == program), None)


@pytest.fixture(name="machine")
def _machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_the_published_node_is_used_where_docker_can_pull(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.registry = {node.PUBLISHED}
    assert node.image() == node.PUBLISHED
    assert (machine.built, capsys.readouterr().out) == ([], "")


def test_a_node_is_built_only_where_docker_cannot_pull_and_one_line_says_so(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert node.image() == node.built_name()
    assert machine.built == [node.built_name()]
    said = [line for line in capsys.readouterr().out.splitlines() if "cannot pull" in line]
    assert len(said) == 1
    assert f"Docker cannot pull {node.PUBLISHED}: building the node offline takes" in said[0]


def test_a_node_that_was_built_here_is_used_without_asking_a_registry(machine: Machine) -> None:
    machine.here = {node.built_name()}
    machine.registry = {node.PUBLISHED}
    assert node.image() == node.built_name()
    assert machine.asked == []


@pytest.mark.parametrize(
    ("here", "registry", "image"),
    [
        ({base.STAND_IN, base.PUBLISHED}, set(), base.STAND_IN),
        ({base.PUBLISHED}, set(), base.PUBLISHED),
        (set(), {base.PUBLISHED}, base.PUBLISHED),
    ],
    ids=["stand-in is here", "published is here", "can be pulled"],
)
def test_the_base_image(machine: Machine, here: set[str], registry: set[str], image: str) -> None:
    machine.here, machine.registry = here, registry
    assert base.image() == image


@pytest.mark.parametrize("pull", [True, False], ids=["asks", "decided already"])
def test_a_base_image_is_made_where_docker_cannot_pull(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pull: bool
) -> None:
    """The offline way to a node has found out already; a second wait for a registry is saved."""
    monkeypatch.setenv("ESPHA_CACHE", str(tmp_path))
    monkeypatch.setattr(debian, "need", lambda *_: None)
    monkeypatch.setattr(command, "run", lambda *_: "")
    assert base.image(pull=pull) == base.STAND_IN
    assert machine.asked == ([base.PUBLISHED] if pull else [])


@pytest.mark.parametrize(
    ("version", "built_here", "used"),
    [
        ("kind v0.33.0 go1.26.8 linux/amd64", False, Path("/usr/bin/kind")),
        ("kind v0.30.0 go1.24.6 linux/amd64", False, Path("/usr/bin/kind")),
        ("kind v0.17.0 go1.19.2 linux/amd64", False, Path("built/kind")),
        ("kind v0.33.0 go1.26.8 linux/amd64", True, Path("built/kind")),
        (None, False, Path("built/kind")),
    ],
    ids=["new", "oldest", "too old", "the node was built here", "there is none"],
)
def test_the_machines_kind_runs_the_published_node_and_no_other(
    machine: Machine, version: str | None, built_here: bool, used: Path
) -> None:
    machine.here = {node.built_name()} if built_here else set()
    machine.own = {"kind": (Path("/usr/bin/kind"), version)} if version else {}
    assert node.kind() == used


def test_programs_of_the_cluster_are_not_the_machines_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ESPHA_CACHE", str(tmp_path / "cache"))
    for folder in (clients.binaries(), tmp_path / "usr"):
        folder.mkdir(exist_ok=True)
        (folder / "helm").write_text("")
        (folder / "helm").chmod(0o755)
    path = f"{clients.binaries()}:{tmp_path / 'usr'}"
    monkeypatch.setenv("PATH", path)
    assert clients.own("helm") == tmp_path / "usr" / "helm"
    monkeypatch.setenv("PATH", str(clients.binaries()))
    assert clients.own("helm") is None


def test_a_bare_python_is_enough() -> None:
    """bootstrap.sh runs it before there is a virtual environment: no package may be needed."""
    names = "tools.venv, tools.offline_cluster.__main__"
    subprocess.run([sys.executable, "-S", "-c", f"import {names}"], cwd=ROOT, check=True)
