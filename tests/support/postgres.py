"""A PostgreSQL server of the machine's packages, on a loopback port, for tests."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from espha.local.ports import HOST, free_ports
from support import groups
from support.servers import listens, wait_until

USER, PASSWORD, DATABASE = "espha", "not-to-be-seen", "postgres"
_PROGRAMS = Path("/usr/lib/postgresql")


class PostgreSQL:
    """One server with its data in a folder of its own; it can be killed and started again."""

    def __init__(self) -> None:
        self._bin = max(_PROGRAMS.glob("*/bin"), key=lambda path: float(path.parent.name))
        # The server refuses to run as root; and nobody else gets into pytest's folders.
        self._user = "postgres" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="espha-postgres-"))
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run("initdb", "-D", self.data, "-U", USER, "-A", "scram-sha-256",
                  "--pwfile", secret, "-E", "UTF8", "--no-sync")  # fmt: skip

    @property
    def data(self) -> Path:
        """The server's folder."""
        return self.folder / "data"

    @property
    def url(self) -> str:
        """The address, as an adapter gets it."""
        return f"postgresql://{USER}@{HOST}:{self.port}/{DATABASE}"

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        self._process = subprocess.Popen(
            [
                self._bin / "postgres", "-D", self.data, "-p", str(self.port),
                "-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories=",
                "-c", "shared_buffers=16MB", "-c", "max_connections=20",
            ],
            user=self._user, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        wait_until(self._answers, 60, "PostgreSQL takes connections")

    def kill(self) -> None:
        """Kill all its processes with SIGKILL, and wait for their end."""
        if self._process is not None:
            groups.kill(self._process)

    def close(self) -> None:
        """End the server, and remove its data."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        ready = [str(self._bin / "pg_isready"), "-q", "-h", HOST, "-p", str(self.port)]
        return listens(self.port) and subprocess.run(ready, check=False).returncode == 0

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self._bin / program, *map(str, arguments)],
            user=self._user, cwd=self.folder, check=True, capture_output=True,
        )  # fmt: skip


@contextmanager
def running() -> Iterator[PostgreSQL]:
    """Run a server of its own as long as the block lasts."""
    server = PostgreSQL()
    try:
        server.start()
        yield server
    finally:
        server.close()
