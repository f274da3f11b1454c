"""Debian packages that a bare machine misses."""

import os

from dev import command
from dev.say import Failure, step


def is_root() -> bool:
    """Says whether this process may install packages and start daemons."""
    return os.geteuid() == 0


def need(program: str, *packages: str) -> None:
    """Makes sure that a program is there, by installing its packages if need be.

    Raises:
        Failure: it is missing and this user or this system cannot install it.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])
    os.environ["PATH"] = path
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
    """Installs packages without questions and without what they only recommend."""
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    command.run("apt-get", "update", "-qq", env=quiet)
    options = ("-y", "-qq", "--no-install-recommends")
    command.run("apt-get", "install", *options, *packages, env=quiet)
