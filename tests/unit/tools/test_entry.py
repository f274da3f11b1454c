"""The one entry of the offline cluster, and how it waits."""

from pathlib import Path

import pytest

from tools.offline_cluster import __main__ as entry
from tools.offline_cluster import clients, cluster, wait
from tools.offline_cluster.say import Failure


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["offline_cluster", *arguments])
    entry.main()


@pytest.mark.parametrize("arguments", [(), ("dwon",), ("up", "now"), ("env", "x")])
def test_what_is_not_a_command_is_answered_with_the_usage(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(cluster, "up", lambda: pytest.fail("nothing may begin"))
    with pytest.raises(Failure, match=r"usage: python -m tools\.offline_cluster COMMAND"):
        call(monkeypatch, *arguments)


@pytest.mark.parametrize("name", ["up", "stop", "delete"])
def test_a_command_does_what_it_says(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    done: list[str] = []
    for each in ("up", "stop", "delete"):
        monkeypatch.setattr(cluster, each, lambda each=each: done.append(each))
    call(monkeypatch, name)
    assert done == [name]


def test_programs_run_against_the_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ESPHA_CACHE", str(tmp_path))
    became: list[tuple[Path, list[str], str]] = []
    monkeypatch.setattr(
        "os.execve", lambda path, words, env: became.append((path, words, env["KUBECONFIG"]))
    )
    with pytest.raises(Failure, match="helm is not there yet; `make cluster` brings it"):
        call(monkeypatch, "helm", "list")
    (clients.binaries() / "helm").write_text("")
    call(monkeypatch, "helm", "list")
    assert became == [(tmp_path / "bin/helm", ["helm", "list"], str(tmp_path / "kubeconfig"))]


def test_the_environment_is_for_a_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ESPHA_CACHE", str(tmp_path))
    call(monkeypatch, "env")
    assert capsys.readouterr().out.splitlines() == [
        f"export KUBECONFIG={tmp_path}/kubeconfig",
        f'export PATH="{tmp_path}/bin:$PATH"',
    ]


def test_waiting_ends_when_the_condition_holds_or_time_is_up() -> None:
    answers = iter([False, False, True])
    assert wait.until(lambda: next(answers), 60, pause=0)
    assert not wait.until(lambda: False, 0, pause=0)
