"""What a deployment costs that nothing happens to: latency, and processor time part by part.

By hand, with options: `.venv/bin/python tests/bench/test_steady.py --help`.
"""

import contextlib
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Annotated

import pytest
import typer
from rich.console import Console
from rich.table import Table

from chaos.models import MODELS
from chaos.reader import Arrival
from chaos.site import Site, running
from chaos.trial import Trial
from espha.kafka.reader import Offsets
from espha.local.processes import family, name_of
from espha.protocol.control import PROCESS_NAME

LINGER_MS = 5
"""What Kafka's own clients wait by default; a row's latency begins before it."""
QUIET = 0.03
"""Java compiles no more when its compilers take less of one core, all JVMs together."""
WINDOW_S = 5.0
LONGEST_WARM_UP_S = 300.0
"""Of what goes on beyond the load that was asked for first."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Wanted:
    """What is measured.

    Attributes:
        rate: input rows a second.
        seconds: how long, after the warm-up.
        model: of the campaign's models.
        linger_ms: how long the load's client waits for more rows before it sends.
        lasting: compile as in production; False: simply, and soon.
        settings: of the brokers, before the usual ones.
        load_s: how long there is load first, at least; Java's better compiler works until the tenth
            minute.
    """

    rate: float = 200
    seconds: float = 60
    model: str = "ha"
    linger_ms: int = LINGER_MS
    lasting: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    load_s: float = 0


@dataclass(frozen=True)
class Measured:
    """What came out.

    Attributes:
        latencies_ms: from an input record's timestamp to a read_committed reader.
        commits: a second.
        shares: of one core, by part.
        threads: of one core, by threads' names of all brokers.
        others: of one core: what ran on the machine besides.
        warm_up_s: how long Java compiled.
    """

    latencies_ms: list[float]
    commits: float
    shares: dict[str, float]
    threads: dict[str, float]
    others: float
    warm_up_s: float


@pytest.mark.timeout(900)
def test_steady(capsys: pytest.CaptureFixture[str]) -> None:
    """200 rows a second."""
    wanted = Wanted()
    measured = measure(wanted)
    with capsys.disabled():
        show(wanted, measured)


def measure(wanted: Wanted) -> Measured:
    """Start a site with one deployment, wait until it is warm, and watch it."""
    with (
        tempfile.TemporaryDirectory(prefix="espha-steady-") as folder,
        running(Path(folder), False, wanted.lasting, wanted.settings) as site,
        _trial(site, Path(folder), wanted) as trial,
    ):
        warm_up_s = _warm_up(site, trial, wanted.load_s)
        offsets, order_log = Offsets(site.kafka.bootstrap), trial.plan.order_log
        seen, first = len(trial.reader.refresh()), offsets.end(order_log)
        before, threads, busy = _used(site, trial), _threads(_brokers(site)), _busy_s()
        started = time.monotonic()
        time.sleep(wanted.seconds)
        took = time.monotonic() - started
        shares = {part: (used - before[part]) / took for part, used in _used(site, trial).items()}
        busy = (_busy_s() - busy) / took
        kinds = _threads(_brokers(site))
        return Measured(
            latencies_ms=_latencies_ms(trial, trial.reader.refresh()[seen:]),
            commits=(offsets.end(order_log) - first) / 2 / took,  # a record and a marker each
            shares=shares,
            threads={kind: (used - threads.get(kind, 0)) / took for kind, used in kinds.items()},
            others=max(0.0, busy - sum(shares.values())),
            warm_up_s=warm_up_s,
        )


@contextlib.contextmanager
def _trial(site: Site, folder: Path, wanted: Wanted) -> Iterator[Trial]:
    trial = Trial(site, folder, wanted.model, wanted.rate, linger_ms=wanted.linger_ms)
    try:
        trial.start()
        yield trial
    finally:
        trial.stop()


def _warm_up(site: Site, trial: Trial, load_s: float) -> float:
    """Wait for `load_s`, and until Java compiles no more, or for long; return how long that was."""
    started = time.monotonic()
    time.sleep(load_s)
    jvms = [*_brokers(site), *_zookeepers(site)]
    jvms += [pid for pid, part in _engines(trial).items() if part.endswith("JVM")]
    compiled, now = _compiled_s(jvms), time.monotonic()
    while now - started < load_s + LONGEST_WARM_UP_S:
        time.sleep(WINDOW_S)
        before, past = compiled, now
        compiled, now = _compiled_s(jvms), time.monotonic()
        if compiled - before < QUIET * (now - past):
            break
    return now - started


def _latencies_ms(trial: Trial, arrivals: list[Arrival]) -> list[float]:
    ahead = time.time() - time.monotonic()
    stamp = MODELS[trial.model_name].stamp
    return [(each.time + ahead) * 1000 - stamp(each.value) for each in arrivals]


def _used(site: Site, trial: Trial) -> dict[str, float]:
    """Return the processor time that each part has taken, in s."""
    parts = {
        **{
            pid: server.name for pid, server in zip(_brokers(site), site.kafka.servers, strict=True)
        },
        **dict.fromkeys(_zookeepers(site), "ZooKeeper, three servers"),
        **_engines(trial),
        trial.load.pid: "load",
        trial.reader.pid: "reader",
    }
    used: dict[str, float] = defaultdict(float)
    for pid, part in parts.items():
        used[part] += _cpu_s(Path(f"/proc/{pid}/stat"))
    return used


def _brokers(site: Site) -> list[int]:
    return [server.process.pid for server in site.kafka.servers if server.process]


def _zookeepers(site: Site) -> list[int]:
    return [server.process.pid for server in site.zookeeper.servers if server.process]


def _engines(trial: Trial) -> dict[int, str]:
    """Return the part that each process of an engine is."""
    active, parts = trial.active(), {}
    for pod in trial.pods:
        assert pod.process is not None
        name = f"{pod.name}, active" if pod is active else pod.name
        for pid in family(pod.process.pid):
            kind = "supervisor" if pid == pod.process.pid else _kind(pid)
            parts[pid] = f"{name}: {kind}"
    return parts


def _kind(pid: int) -> str:
    name, command = name_of(pid), Path(f"/proc/{pid}/cmdline").read_bytes()
    if name == PROCESS_NAME:
        return "engine process"
    if name == "java":
        return "JVM"
    return "worker" if b"pyspark" in command or b"daemon" in command else "fork server"


def _threads(pids: list[int]) -> dict[str, float]:
    """Return the processor time of processes' threads, in s, by name without numbers."""
    used: dict[str, float] = defaultdict(float)
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                kind = "".join(c for c in (task / "comm").read_text() if not c.isdigit()).strip()
                used[kind] += _cpu_s(task / "stat")
    return used


def _compiled_s(pids: list[int]) -> float:
    return sum(used for name, used in _threads(pids).items() if "Compiler" in name)


def _cpu_s(stat: Path) -> float:
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


def _busy_s() -> float:
    """Return the processor time that the whole machine has spent on work."""
    user, nice, system, _, _, *interrupts = (
        Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    )
    return sum(map(int, (user, nice, system, *interrupts[:3]))) / _TICKS


def show(wanted: Wanted, measured: Measured, threads: int = 0) -> None:
    """Print it all, and so many of the brokers' threads."""
    console = Console(width=100)
    cuts = quantiles(measured.latencies_ms, n=100)
    table = Table("rows/s", "commits/s", "p50 ms", "p90 ms", "p99 ms", "max ms", "warm-up s")
    table.add_row(
        f"{wanted.rate:.0f}", f"{measured.commits:.1f}", f"{cuts[49]:.1f}", f"{cuts[89]:.1f}",
        f"{cuts[98]:.1f}", f"{max(measured.latencies_ms):.0f}", f"{measured.warm_up_s:.0f}",
    )  # fmt: skip
    console.print(table)
    parts = Table("part", "% of a core", "ms a commit")
    ours = {part: used for part, used in measured.shares.items() if part not in ("load", "reader")}
    brokers = sum(used for part, used in ours.items() if part.startswith("kafka"))
    rows = {
        **ours,
        "three brokers": brokers,
        "three engines": sum(used for part, used in ours.items() if part.startswith("engine")),
        "the whole": sum(ours.values()),
        "load": measured.shares["load"],
        "reader": measured.shares["reader"],
        "others on this machine": measured.others,
    }
    for part, used in rows.items():
        each = used / measured.commits * 1000 if measured.commits else 0.0
        parts.add_row(part, f"{used * 100:.1f}", f"{each:.2f}", end_section=part == list(ours)[-1])
    for kind, used in sorted(measured.threads.items(), key=lambda item: -item[1])[:threads]:
        parts.add_row(f"brokers' threads {kind}", f"{used * 100:.1f}", "")
    console.print(parts)


def main(
    *,
    rate: Annotated[float, typer.Option(min=1, help="Input rows a second")] = Wanted.rate,
    seconds: Annotated[float, typer.Option(help="How long, after the warm-up")] = Wanted.seconds,
    model: Annotated[str, typer.Option(help=", ".join(MODELS))] = Wanted.model,
    linger_ms: Annotated[int, typer.Option(help="The load's linger.ms")] = LINGER_MS,
    brief: Annotated[bool, typer.Option(help="Servers compile simply, and soon")] = False,
    broker: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, of all brokers")] = None,
    threads: Annotated[int, typer.Option(help="Show so many of the brokers' threads")] = 0,
    load_s: Annotated[float, typer.Option(help="Seconds of load before the warm-up ends")] = 0,
) -> None:
    """Measure a deployment under steady load."""
    settings = dict(text.split("=", 1) for text in broker or ())
    wanted = Wanted(rate, seconds, model, linger_ms, not brief, settings, load_s)
    show(wanted, measure(wanted), threads)


if __name__ == "__main__":
    typer.run(main)
