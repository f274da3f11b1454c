"""An engine's process, its fork server and the JVM: which dies with which, and what stays."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.here import ENVIRONMENT
from espha.kafka.writer import FencedWriter, Record
from espha.local.processes import family
from espha.pipeline.jars import archive_beside
from support.deployment import Deployment
from support.replicas import Replica
from support.servers import JAR_CACHE, Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

SOURCE, OUTPUT = "cq/memory", "cq/outbound"
BACK_S = 180

LAUNCHER = """
import os, sys
from pathlib import Path
from espha.pipeline.session import open_session, start_jvm
from espha.pipeline.transactions import Transactions
bootstrap, jars = sys.argv[1], Path(sys.argv[2])
jvm = start_jvm("local[1]", jars)
pid = os.fork()
if pid == 0:
    jvm.let_go()
    session = open_session("local[1]", jars)
    print("runs", os.getpid(), jvm.pid, flush=True)
    sys.stdin.read(1)
    Transactions(session, bootstrap, "id").fence()
    os._exit(1)
os.waitpid(pid, 0)
jvm.clear()
print("cleared", flush=True)
sys.stdin.read()
"""
"""A fork server whose engine process does nothing but fence, when it is told to."""


@pytest.fixture(scope="module")
def lasting(
    kafka: Kafka, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """One engine that all tests here kill in turn."""
    made = Deployment(kafka, zookeeper, tmp_path_factory.mktemp("fork-server"))
    try:
        made.start(1)
        yield made
    finally:
        made.stop()


@pytest.fixture
def deployment(lasting: Deployment) -> Deployment:
    """The same, in sync again, whatever the test before has left."""
    lasting.wait_in_sync()
    return lasting


def strike(deployment: Deployment, pid: int, number: signal.Signals = signal.SIGKILL) -> Replica:
    """Send a signal to a process of the engine; wait until the engine is back, and publishes."""
    engine = deployment.engines[0]
    before = engine.told()["restarts"]
    os.kill(pid, number)
    back = lambda: engine.status().get("restarts", 0) > before and engine.is_in("active")  # noqa: E731
    wait_until(back, BACK_S, "the engine is back")
    publish_one(deployment)
    return engine


def publish_one(deployment: Deployment) -> None:
    """Send one row through the engine."""
    have = len(deployment.lines(OUTPUT))
    deployment.publish(SOURCE, [f"I,N,,{have},1,2,3"])
    wait_until(lambda: len(deployment.lines(OUTPUT)) == have + 1, BACK_S, "one more output")


def test_a_killed_engine_process_comes_back_on_the_same_jvm(deployment: Deployment) -> None:
    engine = deployment.engines[0]
    publish_one(deployment)
    fork_server, jvm, process = engine.started(), engine.jvm(), engine.child()
    for _ in range(3):
        strike(deployment, engine.child())
    assert (engine.started(), engine.jvm()) == (fork_server, jvm)
    assert engine.child() != process
    wait_until(lambda: not alive(process), 60, "the old process is gone")
    states = [line.split(",")[-1] for line in deployment.lines(OUTPUT)]
    assert states[:4] == ["0.000000", "1.000000", "3.000000", "6.000000"], "the state came along"


@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="this Linux shares the processor by processes"
)
def test_an_engine_that_starts_leaves_the_processor_to_others(deployment: Deployment) -> None:
    """Its JVM and worker are in its fork server's session."""
    engine = deployment.engines[0]
    os.kill(engine.child(), signal.SIGKILL)
    wait_until(lambda: share(engine.jvm()) == 10, 60, "it stands back")
    wait_until(lambda: engine.is_in("active"), BACK_S, "the engine is back")
    assert (share(engine.jvm()), share(engine.child())) == (0, 0)


def share(pid: int) -> int:
    """Return the nice value of a process's session among all sessions."""
    return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])


def test_a_killed_worker_comes_back_on_the_same_jvm(deployment: Deployment) -> None:
    """It held the state, which the next one gets from a snapshot or the log."""
    engine = deployment.engines[0]
    publish_one(deployment)
    fork_server, jvm, worker = engine.started(), engine.jvm(), engine.worker()
    restarts, have = engine.told()["restarts"], len(deployment.lines(OUTPUT))
    os.kill(worker, signal.SIGKILL)
    deployment.publish(SOURCE, [f"I,N,,{have},1,2,3"])
    back = lambda: engine.status().get("restarts", 0) > restarts and engine.is_in("active")  # noqa: E731
    wait_until(back, BACK_S, "the engine is back")
    wait_until(lambda: len(deployment.lines(OUTPUT)) == have + 1, BACK_S, "one more output")
    assert (engine.started(), engine.jvm()) == (fork_server, jvm)
    assert engine.worker() != worker


def test_an_engine_starts_from_the_archive_of_java_classes(deployment: Deployment) -> None:
    """A JVM that cannot use it says so and goes on; its start takes nearly twice the time."""
    engine = deployment.engines[0]
    assert b"-XX:SharedArchiveFile=" in cmdline(engine.jvm())
    log = (engine.folder / f"{engine.name}.log").read_text()
    assert "log4j profile" in log, "the JVM's own lines are there"
    assert "shared archive" not in log


def test_the_archive_of_java_classes_is_not_copied_into_memory(deployment: Deployment) -> None:
    """A JVM that maps it elsewhere than it was made for corrects nearly all of its pages."""
    archive = archive_beside(JAR_CACHE / "engine")
    resident, private = kib_of(deployment.engines[0].jvm(), archive)
    assert resident > 0
    assert private < resident / 2


def kib_of(pid: int, file: Path) -> tuple[int, int]:
    """Return how much (KiB) a process has of a file in memory, and how much of that by itself."""
    resident = private = 0
    within = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, *values = line.split()
        if not name.endswith(":"):
            within = values[-1] == str(file)
        elif within and name == "Rss:":
            resident += int(values[0])
        elif within and name == "Anonymous:":
            private += int(values[0])
    return resident, private


def test_nothing_of_a_dead_engine_process_works_on_in_the_jvm(deployment: Deployment) -> None:
    """One worker, and one holder of the id, however many engine processes there were."""
    engine = deployment.engines[0]

    def workers() -> int:
        those = family(engine.jvm())
        return sum(b"-m\0espha.pipeline.daemon" in cmdline(pid) for pid in those) - 1  # the daemon

    def producers() -> int:
        found = 0
        for task in Path(f"/proc/{engine.jvm()}/task").iterdir():
            with contextlib.suppress(OSError):  # the thread has ended meanwhile
                found += "kafka-producer" in (task / "comm").read_text()
        return found

    strike(deployment, engine.child())
    wait_until(lambda: (workers(), producers()) == (1, 1), 60, "one worker, one producer")


def test_a_fence_that_is_under_way_dies_with_its_engine_process(tmp_path: Path) -> None:
    """It would come late, and shut out the successor.

    What the coordinator has been sent already cannot be taken back; here nobody has found it yet.
    """
    kafka = Kafka(tmp_path)
    try:
        kafka.start()
        kafka.make_topics("t")
        command = [sys.executable, "-c", LAUNCHER, kafka.bootstrap, str(JAR_CACHE / "engine")]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
        ) as program:
            try:
                kill_while_it_fences(program, kafka)
            finally:
                program.kill()
    finally:
        kafka.stop()


def kill_while_it_fences(program: "subprocess.Popen[bytes]", kafka: Kafka) -> None:
    assert program.stdin
    process, jvm = map(int, said(program, b"runs").split()[1:])
    successor = FencedWriter(kafka.bootstrap, "id")
    successor.fence()
    kafka.servers[0].signal(signal.SIGSTOP)
    program.stdin.write(b"f")
    program.stdin.flush()
    wait_until(lambda: "dev.espha.Transactions.fence" in stacks(jvm), 60, "a fence is under way")
    os.kill(process, signal.SIGKILL)
    said(program, b"cleared")
    kafka.servers[0].signal(signal.SIGCONT)
    for _ in range(50):  # the fence would go on when it has its first answer
        successor.commit([Record("t", b"x")])


def test_an_engine_process_that_dies_before_it_is_in_sync_costs_its_jvm(
    deployment: Deployment,
) -> None:
    """What it stumbled over may lie there."""
    engine = deployment.engines[0]
    jvm, first, restarts = engine.jvm(), engine.child(), engine.told()["restarts"]
    engine.kill_child()
    wait_until(lambda: process_of(engine) not in (None, first), 60, "the next engine process")
    engine.kill_child()
    wait_until(
        lambda: engine.status().get("restarts", 0) >= restarts + 2 and engine.is_in("active"),
        BACK_S,
        "the engine is back",
    )
    assert engine.jvm() != jvm


def test_a_killed_jvm_takes_the_engine_process_along(deployment: Deployment) -> None:
    engine = deployment.engines[0]
    fork_server, jvm, process = engine.started(), engine.jvm(), engine.child()
    strike(deployment, jvm)
    assert engine.jvm() != jvm
    assert engine.started() != fork_server
    wait_until(lambda: not alive(process), 60, "the old process is gone")


@pytest.mark.long
def test_a_killed_fork_server_takes_everything_along(deployment: Deployment) -> None:
    engine = deployment.engines[0]
    jvm, process = engine.jvm(), engine.child()
    strike(deployment, engine.started())
    assert engine.jvm() != jvm
    wait_until(lambda: not alive(process) and not alive(jvm), 60, "no old process is left")


@pytest.mark.long
def test_a_frozen_fork_server_is_given_up(deployment: Deployment) -> None:
    """Its engine process's end is seen all the same; it itself is replaced."""
    engine = deployment.engines[0]
    fork_server, jvm = engine.started(), engine.jvm()
    os.kill(fork_server, signal.SIGSTOP)
    strike(deployment, engine.child())
    assert engine.started() != fork_server
    assert engine.jvm() != jvm


def test_a_killed_supervisor_leaves_nothing_behind(deployment: Deployment) -> None:
    engine = deployment.engines[0]
    assert engine.process is not None
    everything = family(engine.process.pid)
    engine.kill()
    engine.process.wait()
    wait_until(lambda: not any(map(alive, everything)), 60, "no process is left")
    engine.start()
    deployment.wait_in_sync()


def said(program: "subprocess.Popen[bytes]", word: bytes) -> bytes:
    """Return the line that begins with a word, of what a program says beside its JVM."""
    assert program.stdout
    return next(line for line in program.stdout if line.startswith(word))


def stacks(jvm: int) -> str:
    """Return what the threads of a JVM are doing."""
    return subprocess.run(
        ["jstack", str(jvm)], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def process_of(engine: Replica) -> int | None:
    """Return the process id of an engine's process; None when there is none now."""
    try:
        return engine.child()
    except (LookupError, OSError):
        return None


def cmdline(pid: int) -> bytes:
    """Return the command of a process; nothing when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def alive(pid: int) -> bool:
    """Tell whether there is such a process, and it is not only waiting to be collected."""
    return bool(cmdline(pid))
