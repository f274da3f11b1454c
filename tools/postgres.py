"""PostgreSQL for tests, where the machine has none: `python -m tools.postgres`."""

from pathlib import Path

from tools.offline_cluster import debian
from tools.offline_cluster.say import Failure, program, step

SERVERS = Path("/usr/lib/postgresql")
_CONFIG = Path("/etc/postgresql-common/createcluster.conf")


def main() -> None:
    """Install Debian's server without starting one: tests make their own, on a free port."""
    if any(SERVERS.glob("*/bin/initdb")):
        return
    if not debian.is_root():
        raise Failure("PostgreSQL is missing; as root on Debian: apt-get install postgresql")
    with step("installing postgresql"):
        if not _CONFIG.exists():
            _CONFIG.parent.mkdir(parents=True, exist_ok=True)
            _CONFIG.write_text("create_main_cluster = false\n")
        debian.install("postgresql")


if __name__ == "__main__":
    program(main)
