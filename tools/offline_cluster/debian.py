"""Debian packages that a bare machine misses."""

import os

from tools.offline_cluster import command
from tools.offline_cluster.say import Failure, step


def is_root() -> bool:
    """Say whether this process may install packages and start daemons."""
    return os.geteuid() == 0


def need(program: str, *packages: str) -> None:
    """Make sure that a program is there, by installing its packages if need be.

    Raises:
        Failure: it is missing and this user or this system cannot install it.
    """
    # a plain user's PATH often lacks these, and a daemon lies there
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path += [each for each in ("/usr/local/sbin", "/usr/sbin", "/sbin") if each not in path]
    os.environ["PATH"] = os.pathsep.join(path)
    if command.found(program):
        return
    wanted = " ".join(packages)
    if not (is_root() and command.found("apt-get")):
        raise Failure(
            f"{program} is missing; as root on Debian: apt-get install {wanted} "
            "(or run this once as root)"
        )
    with step(f"installing {wanted}"):
        install(*packages)


def install(*packages: str) -> None:
    """Install packages without questions and without what they only recommend."""
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    command.run("apt-get", "update", "-qq", env=quiet)
    options = ("-y", "-qq", "--no-install-recommends")
    command.run("apt-get", "install", *options, *packages, env=quiet)
