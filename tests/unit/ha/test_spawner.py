"""How a supervisor's child is started: by a fork server that answers late, wrongly, or never."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from espha.cli import app
from espha.ha import spawner as launch
from espha.ha.spawner import CommandSpawner, ForkServerSpawner, Process, Spawner

BEGIN = """
import array, json, os, socket, sys, time
talk = socket.socket(fileno=int(os.environ["ESPHA_FORK_SERVER_FD"]))
say = lambda **what: talk.send(json.dumps(what).encode())
def request():
    size = array.array("i").itemsize
    message, rights, _, _ = talk.recvmsg(16, socket.CMSG_SPACE(2 * size))
    return array.array("i", rights[0][2])
def life(code):
    stdin, status = request()
    pid = os.fork()
    if not pid:
        os.setsid()
        os.write(status, os.read(stdin, 9))
        os._exit(code)
    os.close(stdin); os.close(status)
    say(pid=pid)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


@pytest.fixture
def started() -> Iterator[list[Spawner]]:
    """Starters that are stopped after the test."""
    spawners: list[Spawner] = []
    yield spawners
    for spawner in spawners:
        spawner.stop()


def fork_server(started: list[Spawner], program: str) -> ForkServerSpawner:
    made = ForkServerSpawner([sys.executable, "-c", BEGIN + program])
    started.append(made)
    return made


def begin(spawner: Spawner, told: bytes = b"word") -> tuple[Process, int]:
    """Start a child that is told something; return it, and where its answer comes."""
    stdin, to_child = os.pipe()
    answer, status = os.pipe()
    os.write(to_child, told)
    os.close(to_child)
    process = spawner.start(stdin, status)
    os.close(stdin)
    os.close(status)
    return process, answer


def ended(process: Process) -> int:
    """Wait for its end; return its exit code."""
    process.wait()
    return process.code()


def test_each_life_has_its_own_descriptors_and_code(started: list[Spawner]) -> None:
    both = fork_server(started, "for code in 1, 2: say(code=life(code))\nrequest()")
    for code, told in ((1, b"one"), (2, b"two")):
        process, answer = begin(both, told)
        assert ended(process) == code
        assert os.read(answer, 9) == told
        assert os.read(answer, 9) == b"", "nobody else holds it open"


def test_a_code_that_comes_too_late_is_not_that_of_the_next_life(started: list[Spawner]) -> None:
    late = fork_server(
        started, "code = life(1)\ntime.sleep(1.5)\nsay(code=code)\nsay(code=life(2))"
    )
    process, _ = begin(late)
    assert ended(process) == -signal.SIGKILL, "it is not waited for"
    process, _ = begin(late)
    assert ended(process) == 2


def test_a_fork_server_that_does_not_answer_is_killed(
    started: list[Spawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_FIRST_ANSWER_S", 0.3)
    dumb = fork_server(started, "time.sleep(1000)")
    process, _ = begin(dumb)
    pid = dumb.pid
    assert ended(process) == -signal.SIGKILL
    begin(dumb)
    assert dumb.pid != pid


def test_a_fork_server_that_has_ended_is_replaced(started: list[Spawner]) -> None:
    short = fork_server(started, "sys.exit(0)")
    for _ in range(2):
        process, _ = begin(short)
        assert ended(process) == -signal.SIGKILL


def test_killed_before_it_was_forked(started: list[Spawner]) -> None:
    slow = fork_server(started, "time.sleep(1000)")
    process, _ = begin(slow)
    process.kill()
    assert ended(process) == -signal.SIGKILL


def test_who_is_distrusted_goes(started: list[Spawner]) -> None:
    kept = fork_server(started, "while True: say(code=life(1))")
    process, _ = begin(kept)
    assert ended(process) == 1
    pid = kept.pid
    ended(begin(kept)[0])
    assert kept.pid == pid
    kept.distrust()
    assert kept.pid is None
    ended(begin(kept)[0])
    assert kept.pid != pid


def test_a_command_is_started_for_each_life(started: list[Spawner], tmp_path: Path) -> None:
    script = "import os; os.write(int(os.environ['ESPHA_STATUS_FD']), os.read(0, 9))"
    command = CommandSpawner([sys.executable, "-c", script])
    started.append(command)
    for told in (b"one", b"two"):
        process, answer = begin(command, told)
        assert os.read(answer, 9) == told
        assert ended(process) == 0


@pytest.mark.parametrize(
    ("words", "kind", "command"),
    [
        ("engine", ForkServerSpawner, "-m espha.engine.fork_server"),
        ("espha engine", ForkServerSpawner, "-m espha.engine.fork_server"),
        ("adapter input --config F", CommandSpawner, "-m espha.cli adapter input --config F"),
        ("espha adapter input --config F", CommandSpawner, "-m espha.cli adapter input --config F"),
        ("/bin/sleep 9", CommandSpawner, "9"),
    ],
)
def test_a_command_of_espha_is_named_with_or_without_espha(
    monkeypatch: pytest.MonkeyPatch, words: str, kind: type[Spawner], command: str
) -> None:
    """`espha supervise -- espha engine` is what people write, and what the documentation says."""
    told: list[CommandSpawner | ForkServerSpawner] = []
    monkeypatch.setattr("espha.jsonlog.configure", lambda: None)  # the runner closes its output
    monkeypatch.setattr(
        "espha.ha.supervisor.supervise",
        lambda settings, spawner, election: told.append(spawner),
    )
    variables = {"ESPHA_BOOTSTRAP": "127.0.0.1:1", "ESPHA_ZOOKEEPER": "127.0.0.1:1"}
    result = CliRunner().invoke(app, ["supervise", "--", *words.split()], env=variables)
    assert result.exit_code == 0, result.output
    assert type(told[0]) is kind
    assert " ".join(told[0]._command[1:]) == command


def test_espha_alone_is_no_command_to_supervise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("espha.jsonlog.configure", lambda: None)
    variables = {"ESPHA_BOOTSTRAP": "127.0.0.1:1"}
    result = CliRunner().invoke(app, ["supervise", "--", "espha"], env=variables)
    assert result.exit_code == 2
    assert "which command" in result.output
