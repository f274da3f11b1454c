"""What `test_fifty_deployments` runs beside itself: an operator that counts, and pods' stand-ins.

`python fifty.py operator FILE`: the operator as it is; every five seconds it appends to FILE what
it has done. `python fifty.py pods FILE`: answers as the engines
would whose pods are listed in FILE, some of them poisonous while FILE.poison exists.
"""

import asyncio
import json
import os
import resource
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from espha.protocol.states import EngineState
from espha_operator import __main__ as operator
from espha_operator import handlers
from espha_operator.api.names import HTTP_PORT
from espha_operator.reconcile.reconciler import Reconciler
from support.status import engine_status

EVERY = 5.0
HEALTH = "http://127.0.0.1:18090/healthz"


def run_operator(file: Path) -> None:
    """Run the operator, and write down what it does."""
    operator.LIVENESS = HEALTH
    steps: deque[tuple[str, float, float]] = deque()
    step = Reconciler.step

    def timed(self: Reconciler) -> None:
        began = time.monotonic()
        try:
            step(self)
        finally:
            name = f"{self._namespace}/{self._name}"
            steps.append((name, began, time.monotonic() - began))

    Reconciler.step = timed  # type: ignore[method-assign]
    prepare = handlers._prepare

    def prepared(memo: Any) -> None:
        prepare(memo)
        threading.Thread(target=write, args=(memo,), daemon=True).start()

    def write(memo: Any) -> None:
        while True:
            time.sleep(EVERY)
            done = [steps.popleft() for _ in range(len(steps))]
            line: dict[str, Any] = {
                "at": time.monotonic(),
                "steps": done,
                "threads": threading.active_count(),
            }
            line["requests"] = [[*key, count] for key, count in memo.cluster.requests.items()]
            line["rss"] = rss()
            line["cpu"] = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            with file.open("a") as out:
                out.write(json.dumps(line) + "\n")

    handlers._prepare = prepared
    operator.main()


def rss() -> int:
    """Return the memory of this process, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20


async def run_pods(file: Path) -> None:
    """Answer as pods would; FILE has lines of address, pod, model digest and kind of poison."""
    pods = [line.split() for line in file.read_text().splitlines()]
    for address, name, digest, poison in pods:

        async def answer(
            reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            name: str = name,
            digest: str = digest,
            poison: str = poison,
        ) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                poisonous = file.with_suffix(".poison").exists()
                await POISONS[poison if poisonous else "none"](writer, name, digest)
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        await asyncio.start_server(answer, address, HTTP_PORT)
    print("serving", flush=True)
    await asyncio.Event().wait()


def status(name: str, digest: str, **changes: Any) -> bytes:
    """Return a good answer."""
    state = EngineState.ACTIVE if name.endswith("-0") else EngineState.STANDBY
    return engine_status(name, state, model_digest=digest, **changes).model_dump_json().encode()


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


async def tell(writer: asyncio.StreamWriter, name: str, digest: str) -> None:
    """Answer as an engine does."""
    body = status(name, digest)
    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


async def drip(writer: asyncio.StreamWriter, *_: str) -> None:
    """Say a byte of a header each tenth of a second."""
    writer.write(HEAD)
    for _second in range(600):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.1)


async def flood(writer: asyncio.StreamWriter, *_: str) -> None:
    """Answer with 300 MiB."""
    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % (300 << 20))
    for _mib in range(300):
        writer.write(b" " * (1 << 20))
        await writer.drain()


async def lie(writer: asyncio.StreamWriter, name: str, digest: str) -> None:
    """Claim to be active with a huge epoch, and find new words each time."""
    words = f"{time.time()} " * 999
    body = engine_status(
        name,
        EngineState.ACTIVE if int(time.time()) % 2 else EngineState.STANDBY,
        in_sync=False,
        epoch=int(time.time()),
        message=words,
        model_digest=digest,
    )
    text = body.model_dump_json().encode()
    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(text) + text)
    await writer.drain()


POISONS: dict[str, Callable[..., Awaitable[None]]] = {
    "none": tell,
    "drip": drip,
    "flood": flood,
    "lie": lie,
}


if __name__ == "__main__":
    if sys.argv[1] == "operator":
        run_operator(Path(sys.argv[2]))
    else:
        asyncio.run(run_pods(Path(sys.argv[2])))
