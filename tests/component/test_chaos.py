"""The short form of the fault campaign: a handful of faults on the sample model, 50 rows a second.

`make chaos` runs the long form; docs/explanation/fault-campaign.md tells what is in it.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos import disk
from chaos.campaign import Plan, campaign
from chaos.here import ENVIRONMENT, ROOT
from chaos.verdict import DAMAGES
from espha.local.processes import family
from support.deployment import Deployment
from support.replicas import CALM, LIMIT_S
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = [pytest.mark.component, pytest.mark.timeout(900)]

FAULTS = ("engine-takeover", "broker-coordinator", "cut-zookeeper", "cut-kafka")


@pytest.mark.long
def test_a_handful_of_faults_costs_no_output(tmp_path: Path) -> None:
    """Nothing is lost, doubled, out of order or wrong, and every acknowledged commit is there."""
    plan = Plan(FAULTS, count=1, rate=50, model="ha", seed=11)
    (outcome,) = campaign(plan, tmp_path, print)
    assert outcome.error == ""
    assert outcome.verdict.problems == []
    assert {kind: outcome.verdict.damage[kind] for kind in DAMAGES} == dict.fromkeys(DAMAGES, 0)
    assert [strike.name for strike in outcome.strikes] != []
    assert sum(strike.false_failovers for strike in outcome.strikes) == 0
    assert outcome.verdict.rows_out == outcome.verdict.rows_in > 0
    assert outcome.verdict.acknowledged > 0
    assert sum(strike.takeovers for strike in outcome.strikes) >= 2


@pytest.mark.long
@pytest.mark.skipif(not disk.possible(), reason="disks that fail need root, to mount them")
@pytest.mark.parametrize("fault", ["power", "broker-disk-full"])
def test_what_brokers_have_acknowledged_survives_their_disks(fault: str, tmp_path: Path) -> None:
    """A13: all brokers at once, on file systems that forget what was not synced; or full ones."""
    (outcome,) = campaign(Plan((fault,), 1, rate=50, model="ha", seed=13), tmp_path, print)
    assert outcome.error == ""
    assert outcome.verdict.problems == []
    assert outcome.verdict.damage.total() == 0
    assert outcome.verdict.rows_out == outcome.verdict.rows_in > 0


@pytest.mark.long
@pytest.mark.parametrize(("model", "outputs_a_row"), [("two", 1.0), ("join", 0.4)])
def test_two_sources_and_a_clock_stay_in_sync(
    model: str, outputs_a_row: float, tmp_path: Path
) -> None:
    """Engines that read two topics and a clock find the same, also after they were killed."""
    plan = Plan(("pair",), count=1, rate=50, model=model, seed=12)
    (outcome,) = campaign(plan, tmp_path, print)
    assert outcome.error == ""
    assert outcome.verdict.problems == []
    assert outcome.verdict.damage.total() == 0
    assert outcome.verdict.rows_out > outputs_a_row * outcome.verdict.rows_in > 0


@pytest.mark.long
def test_a_zombie_is_fenced_and_comes_back_as_a_standby(
    kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """An active pod that was frozen, and wakes up behind its successor, commits nothing more."""
    deployment = Deployment(kafka, zookeeper, tmp_path, settings=CALM)
    try:
        deployment.start(2)
        zombie = deployment.active()
        deployment.publish("cq/memory", [f"I,N,,{number},1,2,3" for number in range(10)])
        assert zombie.process is not None
        everything = family(zombie.process.pid)
        for pid in everything:
            os.kill(pid, signal.SIGSTOP)
        deployment.active_but(zombie)
        deployment.publish("cq/memory", [f"I,N,,{number},1,2,3" for number in range(10, 20)])
        for pid in reversed(everything):
            os.kill(pid, signal.SIGCONT)
        # What it said before it froze is still its status when it wakes up.
        wait_until(lambda: zombie.is_in("standby"), LIMIT_S, "the zombie is a standby")
        deployment.wait_in_sync()
        deployment.publish("cq/memory", [f"I,N,,{number},1,2,3" for number in range(20, 30)])
        wait_until(lambda: len(deployment.lines("cq/outbound")) >= 30, 60, "30 rows of output")
    finally:
        deployment.stop()
    counters = [line.split(",")[3] for line in deployment.lines("cq/outbound")]
    assert counters == [str(number) for number in range(30)]
    writers = [(record["epoch"], record["engine"]) for record in deployment.order_records()]
    assert zombie.name not in [name for epoch, name in writers if epoch > 1]
    log = (tmp_path / f"{zombie.name}.log").read_text()
    assert "Fenced" in log
    assert log.count("hot failover state switched to active") == 1


def test_an_interrupt_ends_a_campaign_behind_the_fault_under_way(tmp_path: Path) -> None:
    """What it has found until then counts."""
    report = tmp_path / "o.json"
    with _campaign(tmp_path, "--faults", "engine", "--count", "1000", "--leg", "1000") as run:
        log = tmp_path / "log"
        wait_until(lambda: b"[1/1000]" in log.read_bytes(), 240, "a fault has struck")
        run.send_signal(signal.SIGTERM)
        wait_until(
            lambda: run.poll() is not None,
            LIMIT_S,
            "the campaign has ended",
            moved=lambda: log.stat().st_size,
        )
        assert run.returncode == 0, log.read_text()
    (leg,) = json.loads(report.read_text())["runs"]
    assert 1 <= len(leg["strikes"]) < 1000
    assert leg["error"] == ""
    assert leg["rows_out"] == leg["rows_in"] > 0
    assert sum(leg["damage"].values()) == 0


def test_a_second_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    """Also a third one, and where a shell had interrupts ignored."""
    with _campaign(tmp_path) as run:
        wait_until(lambda: len(_engines(run.pid)) == 3, 120, "three supervisors are there")
        everything = family(run.pid)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            run.send_signal(number)
        run.wait(60)
        wait_until(lambda: not any(map(_lives, everything)), 30, "all of it has ended")


@contextlib.contextmanager
def _campaign(folder: Path, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a campaign as a program, whose output goes to `log`; end what is left of it."""
    deaf = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    chaos = [sys.executable, "-m", "chaos", "--warm-up", "0", "--output", str(folder / "o.json")]
    with (folder / "log").open("wb") as log:
        run = subprocess.Popen(
            [*deaf, *chaos, *options],
            cwd=ROOT,
            env={**ENVIRONMENT, "TMPDIR": str(folder)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield run
    finally:
        for pid in family(run.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.wait()


def _engines(pid: int) -> list[int]:
    return [each for each in family(pid) if b"supervise" in _command(each)]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _lives(pid: int) -> bool:
    return _command(pid) != b""
