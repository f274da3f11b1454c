"""A read_committed reader in a process of its own, which stamps what arrives.

`python -m chaos.reader BOOTSTRAP FILE TOPIC…` appends a line for each output to FILE:
arrival (ns of the monotonic clock, which all processes of a machine share), topic, offset, message
id, text; separated by tabs.
"""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from chaos.here import ENVIRONMENT
from espha.kafka.reader import check, reader

_AT_MOST = 5_000


class Arrival(NamedTuple):
    """An output, and when it came: seconds of the monotonic clock."""

    time: float
    topic: str
    offset: int
    id: str
    value: str


class Reader:
    """The reader process, and what it has read so far."""

    def __init__(self, bootstrap: str, path: Path, topics: list[str]) -> None:
        path.touch()
        command = [sys.executable, "-m", "chaos.reader", bootstrap, str(path), *topics]
        with path.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env=ENVIRONMENT, stderr=log, start_new_session=True
            )
        self._file = path.open(encoding="utf-8", newline="\n")
        self._rest = ""
        self.arrivals: list[Arrival] = []

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def refresh(self) -> list[Arrival]:
        """Return all arrivals up to now.

        Raises:
            RuntimeError: the reader process has ended.
        """
        if self._process.poll() is not None:
            raise RuntimeError(f"the reader ended with {self._process.returncode}")
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        for line in lines:
            moment, topic, offset, identity, value = line.split("\t", 4)
            self.arrivals.append(Arrival(int(moment) / 1e9, topic, int(offset), identity, value))
        return self.arrivals

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def follow(bootstrap: str, path: Path, topics: list[str]) -> None:
    """Follow the topics for ever."""
    gc.disable()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    consumer = reader(bootstrap, dict.fromkeys(topics, 0))
    while True:
        first = consumer.poll(1.0)
        if first is None:
            continue
        lines = []
        for message in [first, *consumer.consume(_AT_MOST, 0)]:
            now = time.monotonic_ns()
            if check(message):
                identity = dict(message.headers() or ()).get("espha-id", b"").decode()
                value = message.value().decode()
                lines.append(f"{now}\t{message.topic()}\t{message.offset()}\t{identity}\t{value}\n")
        os.write(descriptor, "".join(lines).encode())


if __name__ == "__main__":
    follow(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
