"""A broker of MQTT of the machine's package, on a loopback port, for tests."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from espha.local.ports import HOST, free_ports
from support.servers import listens, wait_until

OPEN = ("allow_anonymous true", "log_type all")
"""Settings of a broker that takes anybody, and notes all that happens."""
_PROGRAM = Path("/usr/sbin/mosquitto")


class Mosquitto:
    """One broker with its data in a folder of its own; it can be ended and started again."""

    def __init__(self, settings: Sequence[str] = ("allow_anonymous true",)) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="espha-mosquitto-"))
        (self.port,) = free_ports(1)
        self.log = self.folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        content = [
            *(["user root"] if os.geteuid() == 0 else []),
            f"listener {self.port} {HOST}",
            "persistence true",
            f"persistence_location {self.folder}/",
            "max_queued_messages 0",
            *settings,
        ]
        self._settings = self.folder / "mosquitto.conf"
        self._settings.write_text("\n".join(content) + "\n")

    @property
    def address(self) -> str:
        """Where it is, as an adapter gets it."""
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        """Start the broker, and wait until it listens."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [_PROGRAM, "-c", self._settings], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(lambda: listens(self.port), 60, "mosquitto listens")

    def end(self) -> None:
        """End it as machines that are shut down do: it writes down what it has promised."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)

    def kill(self) -> None:
        """Kill it with SIGKILL: it forgets what it had not written down."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End the broker, and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def running(settings: Sequence[str] = ("allow_anonymous true",)) -> Iterator[Mosquitto]:
    """Run a broker of its own as long as the block lasts."""
    broker = Mosquitto(settings)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()
