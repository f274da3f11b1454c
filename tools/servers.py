"""Servers for tests, where the machine has none: `python -m tools.servers`."""

from pathlib import Path

from tools.offline_cluster import debian
from tools.offline_cluster.say import Failure, program, step

POSTGRES = Path("/usr/lib/postgresql")
MOSQUITTO = Path("/usr/sbin/mosquitto")
_CLUSTERS = Path("/etc/postgresql-common/createcluster.conf")
_UNIT = Path("/etc/systemd/system/mosquitto.service")


def main() -> None:
    """Install Debian's servers without starting one: tests make their own, on free ports."""
    missing: list[str] = []
    if not any(POSTGRES.glob("*/bin/initdb")):
        missing.append("postgresql")
    if not MOSQUITTO.exists():
        missing.append("mosquitto")
    if not missing:
        return
    wanted = " ".join(missing)
    if not debian.is_root():
        raise Failure(f"servers for tests are missing; as root on Debian: apt-get install {wanted}")
    with step(f"installing {wanted}"):
        _start_none(missing)
        debian.install(*missing)


def _start_none(packages: list[str]) -> None:
    """Keep the packages from starting a server of their own."""
    if "postgresql" in packages and not _CLUSTERS.exists():
        _CLUSTERS.parent.mkdir(parents=True, exist_ok=True)
        _CLUSTERS.write_text("create_main_cluster = false\n")
    if "mosquitto" in packages and _UNIT.parent.is_dir() and not _UNIT.exists():
        _UNIT.symlink_to("/dev/null")  # as `systemctl mask` does


if __name__ == "__main__":
    program(main)
