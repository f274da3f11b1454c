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
_IN_FLIGHT = 5
"""Requests that an idempotent producer may have on their way to a broker.

With so many, and rows that wait, librdkafka's thread asks again and again without a pause. It took
half a core, and more, just when brokers were slow.
"""
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
    """Write until standard input ends; return the number of rows written."""
    producer = Producer(
        {
            **CLIENT_TUNING,
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": linger_ms,
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
    row, start, sent = MODELS[model].row, time.monotonic(), 0
    on_their_way = 0

    def delivered(*_: object) -> None:
        nonlocal on_their_way
        on_their_way -= 1

    while not ended.wait(max(_TICK_S, linger_ms / 1000)):
        producer.poll(0)
        if paused.is_set():
            start = time.monotonic() - sent / rate
        while bursts:
            start -= bursts.popleft() / rate
        due = int((time.monotonic() - start) * rate)
        if due <= sent or on_their_way + len(topics) > _IN_FLIGHT:
            continue
        last_ones = max(sent, due - len(topics))  # one a topic, and a request a topic
        for number in range(sent, due):
            text = row(number, time.time_ns() // 1_000_000).encode()
            topic, told = topics[number % len(topics)], {}
            if number >= last_ones:
                told, on_their_way = {"on_delivery": delivered}, on_their_way + 1
            producer.produce(topic, text, partition=PARTITION, **told)
        sent = due
    left: int = producer.flush(_FLUSH_S)
    return sent - left


if __name__ == "__main__":
    print(write(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]))
