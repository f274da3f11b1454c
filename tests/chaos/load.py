"""Steady load: rows with the wall clock in them, in a process of its own.

`python -m chaos.load MODEL BOOTSTRAP RATE LINGER_MS TOPIC…` writes until its standard input ends,
then waits until everything is on the topics, and prints how many rows that are. An empty line of
standard input has it pause, or go on; a number has it write so many rows at once.
"""

import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from confluent_kafka import Producer

from chaos.here import ENVIRONMENT
from chaos.models import MODELS
from espha.kafka.reader import CLIENT_TUNING, PARTITION

LINGER_MS = 20
_TICK_S = 0.01
_TOGETHER_MS = 0.5
"""librdkafka's own `linger.ms`: what is sent at once leaves in one request."""
_POLL_S = 0.001
"""librdkafka waits in whole milliseconds."""
_FLUSH_S = 120.0


class Load:
    """The load process, as the campaign sees it."""

    def __init__(
        self,
        model: str,
        bootstrap: str,
        rate: float,
        topics: list[str],
        log: Path,
        *,
        linger_ms: int = LINGER_MS,
    ) -> None:
        numbers = (str(rate), str(linger_ms))
        command = [sys.executable, "-m", "chaos.load", model, bootstrap, *numbers, *topics]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=ENVIRONMENT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def toggle(self) -> None:
        """Have it pause, or go on; what was not written in the pause is not made up for."""
        self._tell("")

    def burst(self, rows: int) -> None:
        """Have it write so many rows at once, and go on as before."""
        self._tell(str(rows))

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def stop(self) -> int:
        """End the load; return how many rows are on the topics."""
        answer, _ = self._process.communicate("", timeout=_FLUSH_S + 10)
        return int(answer)

    def kill(self) -> None:
        """End it without asking."""
        self._process.kill()
        self._process.wait()


def write(model: str, bootstrap: str, rate: float, linger_ms: int, topics: list[str]) -> int:
    """Write until standard input ends; return the number of rows written.

    Rows say when they were made, and leave so many ms later, as with a client that fills its
    requests. One request a topic is on its way, and what is made meanwhile waits here. With two, a
    broker that has just begun to lead may refuse the second one as out of order; behind that
    librdkafka wrote rows twice, and once none any more. And where rows wait in librdkafka, its
    thread looks after them without a pause: it took half a core, just when brokers were slow.
    """
    producer = Producer(
        {
            **CLIENT_TUNING,
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": 1,
            "linger.ms": _TOGETHER_MS,
            "message.timeout.ms": 0,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    ended, paused = threading.Event(), threading.Event()
    bursts = deque[int]()

    def listen() -> None:
        for line in sys.stdin:
            if line.strip():
                bursts.append(int(line))
            else:
                (paused.clear if paused.is_set() else paused.set)()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    waiting: list[tuple[str, bytes]] = []

    def send() -> None:
        for topic, text in waiting:
            producer.produce(topic, text, partition=PARTITION)
        waiting.clear()

    row, start, made = MODELS[model].row, time.monotonic(), 0
    linger_s = linger_ms / 1000
    tick_s = max(_TICK_S, linger_s)
    next_tick = leave = start
    while not ended.is_set():
        now = time.monotonic()
        if waiting and not len(producer) and now >= leave:
            send()
        if now >= next_tick:
            next_tick = now + tick_s
            if paused.is_set():
                start = now - made / rate
            while bursts:
                start -= bursts.popleft() / rate
            due = int((now - start) * rate)
            leave = leave if waiting else now + linger_s
            for number in range(made, due):
                text = row(number, time.time_ns() // 1_000_000).encode()
                waiting.append((topics[number % len(topics)], text))
            made = max(made, due)
        wake = min(next_tick, leave) if waiting and not len(producer) else next_tick
        left_s = wake - time.monotonic()
        if left_s >= _POLL_S:
            producer.poll(left_s)  # until something is delivered
        else:
            ended.wait(max(0.0, left_s))
            producer.poll(0)
    send()
    left: int = producer.flush(_FLUSH_S)
    return made - left


if __name__ == "__main__":
    print(write(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]))
