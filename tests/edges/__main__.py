"""`make edges EDGES="…"`, or `python -m edges …` with engine and tests on the path."""

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from chaos.here import ROOT, commit
from edges import judge, record, sinks, sources
from edges.record import Result
from edges.sinks import Output, Sink, Sinks
from edges.sources import Feeding, Source, World
from edges.striking import Restarts, Striker
from espha.checker.damage import compare
from support import mosquitto, postgres
from support.adapters import Adapters, stopped_at_the_end
from support.servers import Kafka, Server, ZooKeeper, wait_until

DOCS = ROOT / "docs" / "chaos"
_LIMIT_S = 300.0
"""For longer than this nothing may stand still."""
_OTHERS = 0.2
"""Rows a second of sources other than files, as a share."""
_FIRST_KILL_S = 120
_RESTART_EACH_S = 30.0
_CONSOLE = Console(soft_wrap=True) if sys.stdout.isatty() else Console(width=140, soft_wrap=True)


def main(
    *,
    part: Annotated[str, typer.Option(help="sources, sinks, or both")] = "both",
    only: Annotated[str, typer.Option(help="Kinds of adapters, with commas; by default all")] = "",
    kills: Annotated[int, typer.Option(min=1, help="SIGKILLs of each adapter")] = 20,
    rotations: Annotated[int, typer.Option(min=0, help="Rotations of each of three kinds")] = 10,
    rate: Annotated[float, typer.Option(min=1, help="Rows a second")] = 1000,
    seed: Annotated[int, typer.Option(help="Repeat a run's choices")] = 18,
    docs: Annotated[bool, typer.Option(help="Keep the results in docs/chaos/")] = False,
) -> None:
    """Kill adapters again and again, and say what an independent reader finds."""
    signal.signal(signal.SIGTERM, _interrupt)
    results: list[Result] = []
    chosen = frozenset(filter(None, only.split(",")))
    unknown = chosen - {*sources.SOURCES, *sinks.KINDS}
    if unknown:
        known = ", ".join({**sources.SOURCES, **dict.fromkeys(sinks.KINDS)})
        raise typer.BadParameter(f"{min(unknown)!r} is not one of: {known}")
    with tempfile.TemporaryDirectory(prefix="espha-edges-") as folder:
        campaign = Campaign(Path(folder), chosen, kills, rotations, rate, seed)
        if part in ("sources", "both"):
            results += campaign.run_sources()
        if part in ("sinks", "both"):
            results += campaign.run_sinks()
    _CONSOLE.print(record.table(results))
    for result in results:
        if result.first:
            _CONSOLE.print(f"{result.adapter}: {result.first}", markup=False)
    if docs:
        made_of = {"commit": commit()}
        record.keep([one.model_copy(update=made_of) for one in results], DOCS)
    raise typer.Exit(1 if any(result.damaged for result in results) else 0)


def _interrupt(*_: object) -> None:
    """End, and with it all that was started."""
    raise KeyboardInterrupt


@dataclass(frozen=True)
class Campaign:
    """A run of the campaign.

    Attributes:
        folder: gets everything that is written.
        only: kinds of adapters; empty: all.
        kills: SIGKILLs of each adapter.
        rotations: of each kind.
        rate: rows a second.
        seed: of all choices.
    """

    folder: Path
    only: frozenset[str]
    kills: int
    rotations: int
    rate: float
    seed: int

    def _chosen(self, kinds: Sequence[str]) -> list[str]:
        return [kind for kind in kinds if not self.only or kind in self.only]

    @contextmanager
    def _servers(self, name: str) -> Iterator[tuple[Adapters, Kafka, mosquitto.Mosquitto]]:
        folder = self.folder / name
        folder.mkdir()
        near, far = Kafka(folder / "near"), Kafka(folder / "far")
        zookeeper = ZooKeeper(folder / "zookeeper")
        with ExitStack() as ends:
            for server in (near, far, zookeeper):
                ends.callback(server.stop)
                server.start()
            broker = ends.enter_context(mosquitto.running())
            environment = {"PGPASSWORD": postgres.PASSWORD}
            made = Adapters(near, zookeeper, folder, environment)
            yield ends.enter_context(stopped_at_the_end(made)), far, broker

    def run_sources(self) -> list[Result]:
        """Kill the active one of each pair of input adapters."""
        with self._servers("sources") as (adapters, far, broker):
            world = World(adapters, far, broker, self.seed)
            made = {
                name: sources.source(name, world, self.rate * (1 if name == "file" else _OTHERS))
                for name in self._chosen(list(sources.SOURCES))
            }
            pairs = {name: adapters.start_pair(name, **made[name].settings) for name in made}
            feeds = {name: self._feeding(name, one) for name, one in made.items()}
            strikers = [
                Striker(name, pair, self.kills, self.seed + place)
                for place, (name, pair) in enumerate(pairs.items())
            ]
            turns = Restarts([lambda: _again(broker)], _RESTART_EACH_S)
            _strike([*feeds.values()], strikers, turns)
            for feed in feeds.values():
                feed.end()
            for feed in feeds.values():
                feed.join()
                if feed.error is not None:
                    raise feed.error
            return self._judge_sources(adapters, made, feeds, strikers, turns.done)

    def _feeding(self, name: str, source: Source) -> Feeding:
        rotations = 3 * self.rotations if name == "file" else 0
        return Feeding(name, source.feed, source.rate, rotations)

    def _judge_sources(
        self,
        adapters: Adapters,
        made: dict[str, Source],
        feeds: dict[str, Feeding],
        strikers: list[Striker],
        restarts: int,
    ) -> list[Result]:
        bootstrap, topic = adapters.kafka.bootstrap, adapters.input_topic
        due = sum(feed.count for feed in feeds.values())
        found: list[str] = []

        def all_there() -> bool:
            found[:] = judge.messages(bootstrap, topic)
            return len(found) >= due

        wait_until(all_there, _LIMIT_S, f"{due} rows", 2.0, lambda: len(found))
        by_tag = sources.seen_by_tag(found)
        results = []
        for striker in strikers:
            name = striker.adapter
            got, count = by_tag.pop(made[name].tag, []), feeds[name].count
            besides = {
                "file": f"{3 * self.rotations} rotations", "mqtt": f"{restarts} ends of the broker"
            }.get(name, "")  # fmt: skip
            damage = compare(range(count), got)
            results.append(Result.of(f"{name} in", striker.done, count, damage, besides))
        if by_tag:
            torn = compare([], [number for numbers in by_tag.values() for number in numbers])
            results.append(Result.of("torn, or of nobody", 0, 0, torn))
        return results

    def run_sinks(self) -> list[Result]:
        """Kill each output adapter, and servers that they write to."""
        with (
            self._servers("sinks") as (adapters, far, broker),
            postgres.running() as database,
            closing(Sinks(adapters, far, broker, database)) as made,
        ):
            chosen = {name: made.all[name] for name in self._chosen(list(made.all))}
            replicas = {
                name: adapters.start(f"{name}-0", "output", **sink.settings)
                for name, sink in chosen.items()
            }
            wait_until(
                lambda: all(one.is_in("active") for one in replicas.values()),
                _FIRST_KILL_S, "all adapters are active",
            )  # fmt: skip
            output = Output(adapters, self.rate)
            strikers = [
                Striker(name, [replica], self.kills, self.seed + place)
                for place, (name, replica) in enumerate(replicas.items())
            ]
            server = far.servers[0]
            turns = Restarts(
                [lambda: _killed(database), lambda: _again(broker), lambda: _struck(server)],
                _RESTART_EACH_S,
            )
            _strike([output], strikers, turns)
            output.close()
            return self._judge_sinks(chosen, output.count, strikers, turns.done)

    def _judge_sinks(
        self, made: dict[str, Sink], count: int, strikers: list[Striker], restarts: int
    ) -> list[Result]:
        everything, last = sinks.rows(count), sinks.newest(count)
        results = []
        for striker in strikers:
            sink = made[striker.adapter]
            expected, got = last if sink.upserts else everything, _complete(sink, count)
            besides = {
                "postgres": f"{(restarts + 2) // 3} kills of the server",
                "postgres-upsert": f"{(restarts + 2) // 3} kills of the server",
                "mqtt": f"{(restarts + 1) // 3} ends of the broker",
                "kafka": f"{restarts // 3} kills of the broker",
            }.get(striker.adapter, "")
            damage = compare(expected, got)
            kind = f"{striker.adapter} out"
            results.append(Result.of(kind, striker.done, len(expected), damage, besides))
        return results


def _complete(sink: Sink, count: int) -> list[judge.Row]:
    """Return the rows of a sink once the last one is there."""
    found: list[judge.Row] = []

    def there() -> bool:
        found[:] = sink.read()
        return any(number == count - 1 for _, number in found[-50:])

    wait_until(there, _LIMIT_S, "the last row", 2.0, lambda: len(found))
    return found


def _strike(
    feeds: Sequence[Feeding | Output], strikers: Sequence[Striker], turns: Restarts
) -> None:
    """Feed and kill until there were enough kills."""
    everybody = [*feeds, *strikers, turns]
    for one in everybody:
        one.start()
    done: Callable[[], int] = lambda: sum(striker.done for striker in strikers)  # noqa: E731
    began = told = time.monotonic()

    def over() -> bool:
        nonlocal told
        if time.monotonic() - told > 30:
            told = time.monotonic()
            each = ", ".join(f"{one.adapter} {one.done}" for one in strikers)
            _CONSOLE.print(f"{told - began:.0f} s, kills: {each}", highlight=False)
        return not any(striker.is_alive() for striker in strikers)

    wait_until(over, _LIMIT_S, "kills", 0.5, done)
    turns.end()
    few = [one.adapter for one in strikers if one.done < one.kills]
    ended = [one.name for one in feeds if not one.is_alive()]
    if few or ended:
        raise RuntimeError(f"not killed often enough: {few}; feeds that have ended: {ended}")


def _again(broker: mosquitto.Mosquitto) -> None:
    broker.end()
    broker.start()


def _killed(server: postgres.PostgreSQL) -> None:
    server.kill()
    server.start()


def _struck(server: Server) -> None:
    server.kill()
    server.start()
    server.wait()


if __name__ == "__main__":
    typer.run(main)
