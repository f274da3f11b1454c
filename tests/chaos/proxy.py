"""Bad networks: a TCP proxy between each engine and each server, in a process of its own.

Slow: bytes come late, and where a packet is lost, all behind it wait until it is sent again, as an
application sees it over TCP.

A cut is a cable that is pulled: connections stay open and carry nothing, new ones get no answer.
What was on its way comes late, when the cable is back; nobody is told anything. Toxiproxy does the
same, as a daemon that would have to be fetched and installed; these lines need nothing.
"""

import asyncio
import gc
import json
import random
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from chaos.here import ENVIRONMENT

_HIGH_WATER = 1 << 20
_STEP_S = 1e-6
RESENT_MS = 200.0
"""How long Linux waits at least before it sends a packet again."""


class Route(NamedTuple):
    """What connects to `listen` is connected to `target` (loopback ports), unless it is cut."""

    name: str
    listen: int
    target: int


class Weather(NamedTuple):
    """How a network treats what is sent.

    Attributes:
        delay_ms, jitter_ms: each piece is late by the first, and by chance up to the second more.
        loss: share of the pieces that are lost, and come after `RESENT_MS` more.
    """

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0

    def __str__(self) -> str:
        return f"{self.delay_ms:.0f}+{self.jitter_ms:.0f} ms late, {self.loss:.1%} lost"

    def late_s(self) -> float:
        """Return by how much (s) the next piece is late."""
        lost = RESENT_MS if random.random() < self.loss else 0.0
        return (self.delay_ms + random.uniform(0, self.jitter_ms) + lost) / 1000


class Proxy:
    """The proxy process, as the campaign sees it."""

    def __init__(self, routes: list[Route]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chaos.proxy", json.dumps(routes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        self._answer("ready")

    def cut(self, *names: str) -> None:
        """Pull these cables; done when this returns."""
        self._tell("cut", names)

    def heal(self, *names: str) -> None:
        """Put these cables back."""
        self._tell("heal", names)

    def slow(self, weather: Weather, *names: str) -> None:
        """Treat what goes over these cables like that from now on."""
        self._tell("slow", names, weather)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _tell(self, what: str, names: tuple[str, ...], weather: Weather | None = None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([what, weather, *names]) + "\n")
        self._process.stdin.flush()
        self._answer("done")

    def _answer(self, expected: str) -> None:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if answer != expected:
            raise RuntimeError(f"the proxy says {answer!r}, not {expected!r}")


@dataclass
class Cables:
    """All connections by the name of their route, and which routes are cut."""

    cut: set[str] = field(default_factory=set)
    ends: defaultdict[str, set["End"]] = field(default_factory=lambda: defaultdict(set))
    waiting: list[tuple[Route, "End"]] = field(default_factory=list)
    weather: dict[str, Weather] = field(default_factory=dict)

    def command(self, what: str, weather: list[float] | None, names: list[str]) -> None:
        """Cut, heal or slow."""
        if weather:
            self.weather |= dict.fromkeys(names, Weather(*weather))
            return
        for name in names:
            (self.cut.add if what == "cut" else self.cut.discard)(name)
            for end in list(self.ends[name]):
                end.let(name not in self.cut)
        waiting, self.waiting = self.waiting, []
        for route, end in waiting:
            end.dial(route)


class End(asyncio.Protocol):
    """One end of a proxied connection; `other` is the end that faces the other side."""

    def __init__(self, cables: Cables, name: str, route: Route | None = None) -> None:
        self._cables, self._name, self._route = cables, name, route
        self._early = bytearray()
        self._due = 0.0
        self._full = False
        self.transport: Any = None
        self.other: End | None = None

    def connection_made(self, transport: Any) -> None:
        """Note that a client came, or the server answered."""
        self.transport = transport
        transport.set_write_buffer_limits(_HIGH_WATER)
        self._cables.ends[self._name].add(self)
        self.let(self._name not in self._cables.cut)
        if self._route is not None:
            self.dial(self._route)
        elif self.other is not None:
            transport.write(bytes(self.other._early))
            self.other.other = self

    def dial(self, route: Route) -> None:
        """Connect to the server, now or when the cable is back."""
        if route.name in self._cables.cut:
            self._cables.waiting.append((route, self))
            return
        asyncio.get_running_loop().create_task(self._dial(route))

    async def _dial(self, route: Route) -> None:
        far = End(self._cables, route.name)
        far.other = self
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: far, "127.0.0.1", route.target)
        except OSError:
            self.transport.abort()  # the server is dead: the client is told, as without a proxy
        else:
            if self.transport.is_closing():
                far.transport.abort()

    def let(self, flow: bool) -> None:
        """Let bytes through, or leave them in the system's buffers."""
        if self.transport.is_closing():
            return
        (self.transport.resume_reading if flow else self.transport.pause_reading)()

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, now or late; never before those that came before them."""
        loop = asyncio.get_running_loop()
        weather = self._cables.weather.get(self._name, Weather())
        late = weather.late_s() if any(weather) else 0.0
        if not late and self._due <= loop.time():
            self._pass(data)
        else:  # timers of the same moment have no order
            self._due = max(self._due + _STEP_S, loop.time() + late)
            loop.call_at(self._due, self._pass, data)

    def _pass(self, data: bytes) -> None:
        if self.other is None or self.other.transport is None:
            self._early += data
        elif not self.other.transport.is_closing():
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        """Let the other side wait: this one is slow."""
        if self.other is not None:
            self.other.let(False)

    def resume_writing(self) -> None:
        """Let the other side go on: this one has room again."""
        if self.other is not None:
            self.other.let(self._name not in self._cables.cut)

    def connection_lost(self, error: Exception | None) -> None:
        """One side closed: the other is closed too."""
        self._cables.ends[self._name].discard(self)
        if self.other is not None and self.other.transport is not None:
            loop = asyncio.get_running_loop()
            loop.call_at(max(self._due + _STEP_S, loop.time()), self.other.transport.close)


async def serve(routes: list[Route]) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    cables = Cables()

    for route in routes:
        client = partial(End, cables, route.name, route)
        await loop.create_server(client, "127.0.0.1", route.listen)
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    print("ready", flush=True)
    while line := await commands.readline():
        what, weather, *names = json.loads(line)
        cables.command(what, weather, names)
        print("done", flush=True)


if __name__ == "__main__":
    gc.freeze()
    asyncio.run(serve([Route(*entry) for entry in json.loads(sys.argv[1])]))
