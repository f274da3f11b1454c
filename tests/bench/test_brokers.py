"""How long output pauses behind a broker's death, by how brokers and clients notice it."""

import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from rich.console import Console
from rich.table import Table

from espha.kafka.reader import CLIENT_TUNING, open_reader
from espha.kafka.writer import FencedWriter, Record
from espha.local import servers
from support.servers import LASTING_BROKERS, Kafka, Server, wait_until

RECORDS = [*(Record("outputs", b"x" * 40) for _ in range(5)), Record("order", b"y" * 300)]
PAUSE_S = 0.05
KILLS = 10
INTERVAL = "topic.metadata.refresh.interval.ms"
TUNED = CLIENT_TUNING[INTERVAL]
WAYS = {
    "timeouts; clients ask when a request fails": ("kafka.Kafka", 300_000),
    f"timeouts; clients also ask every {TUNED} ms": ("kafka.Kafka", TUNED),
    "lifelines; as espha is set": (servers.BROKER, TUNED),
}
VICTIMS: dict[str, Callable[[Kafka], Server | None]] = {
    "leader": lambda kafka: kafka.leader_of("outputs"),
    "controller": Kafka.controller,
}


@pytest.mark.timeout(3600)
def test_broker_deaths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer commits, a reader follows; a broker is killed each time."""
    table = Table("noticed by", "killed", "kills", "p50 ms", "max ms", "above 3 s", "ratio",
                  "idle CPU ms/s")  # fmt: skip
    base: dict[str, float] = {}
    for way, (main, interval) in WAYS.items():
        monkeypatch.setattr(servers, "BROKER", main)
        monkeypatch.setitem(CLIENT_TUNING, INTERVAL, interval)
        kafka = Kafka(tmp_path / main / str(interval), 3, java=LASTING_BROKERS)
        try:
            kafka.start()
            kafka.make_topics("outputs", "order")
            for name, victim in VICTIMS.items():
                with Traffic(kafka.bootstrap, f"bench-{name}") as traffic:
                    gaps = [struck(kafka, traffic, victim) for _ in range(KILLS)]
                middle = median(gaps)
                table.add_row(
                    way, name, str(KILLS), f"{middle:.0f}", f"{max(gaps):.0f}",
                    str(sum(gap > 3000 for gap in gaps)),
                    f"{middle / base.setdefault(name, middle):.2f}", f"{idle(kafka):.1f}",
                )  # fmt: skip
        finally:
            kafka.stop()
    with capsys.disabled():
        Console(width=130).print(table)


class Traffic:
    """One writer and one reader, each in a thread; `arrivals` are in s of the monotonic clock."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._bootstrap, self._id = bootstrap, transactional_id
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._write, self._read)]
        self.arrivals: list[float] = []

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def flows(self, since: float) -> bool:
        """Tell whether something arrived behind a moment."""
        return bool(self.arrivals) and self.arrivals[-1] > since

    def _write(self) -> None:
        writer = FencedWriter(self._bootstrap, self._id)
        writer.fence()
        while not self._ended.wait(PAUSE_S):
            writer.commit(RECORDS)

    def _read(self) -> None:
        with open_reader(self._bootstrap, {"outputs": 0}) as consumer:
            while not self._ended.is_set():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    self.arrivals.append(time.monotonic())


def struck(kafka: Kafka, traffic: Traffic, chosen: Callable[[Kafka], Server | None]) -> float:
    """Kill a broker, start it again when output goes on; return the pause in ms."""
    wait_until(kafka.whole, 60, "all replicas in sync")
    wait_until(lambda: traffic.flows(time.monotonic() - 0.2), 60, "output flows")
    victim = chosen(kafka)
    assert victim is not None
    killed = time.monotonic()
    victim.kill()
    wait_until(lambda: traffic.flows(killed + 0.4), 120, "output goes on")
    wait_until(lambda: time.monotonic() > killed + 4, 10, "all that belongs to the death is over")
    seen = [killed, *(each for each in traffic.arrivals if each > killed)]
    victim.start()
    victim.wait()
    return max(after - before for before, after in pairwise(seen)) * 1000


def idle(kafka: Kafka, seconds: float = 10) -> float:
    """Return the processor time of this process, in ms a second, for clients that only wait."""
    FencedWriter(kafka.bootstrap, "idle").fence()
    used = time.process_time()
    time.sleep(seconds)
    return (time.process_time() - used) / seconds * 1000
