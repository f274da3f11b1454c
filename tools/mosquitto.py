"""An MQTT server for tests, where the machine has none: `python -m tools.mosquitto`."""

from pathlib import Path

from tools.offline_cluster import debian
from tools.offline_cluster.say import Failure, program, step

SERVER = Path("/usr/sbin/mosquitto")
_POLICY = Path("/usr/sbin/policy-rc.d")


def main() -> None:
    """Install Debian's server without starting one: tests start their own, on a free port."""
    if SERVER.exists():
        return
    if not debian.is_root():
        raise Failure("mosquitto is missing; as root on Debian: apt-get install mosquitto")
    with step("installing mosquitto"):
        ours = not _POLICY.exists()
        if ours:
            _POLICY.write_text("#!/bin/sh\nexit 101\n")  # packages start no servers
            _POLICY.chmod(0o755)
        try:
            debian.install("mosquitto")
        finally:
            if ours:
                _POLICY.unlink()


if __name__ == "__main__":
    program(main)
