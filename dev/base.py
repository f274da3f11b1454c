"""The Debian image under every image of ours: the published one, or a stand-in made here."""

from dev import cache, command, debian, docker
from dev.say import step

PUBLISHED = "debian:bookworm-slim"
STAND_IN = "espha/debian:bookworm"


def image() -> str:
    """Returns the name of a Debian 12 image that Docker has.

    Raises:
        Failure: it can neither be pulled nor made from Debian's packages.
    """
    for name in (STAND_IN, PUBLISHED):
        if docker.has(name):
            return name
    if docker.pulled(PUBLISHED):
        return PUBLISHED
    debian.need("mmdebstrap", "mmdebstrap", "ca-certificates")
    with step("making a Debian base image from packages"), cache.scratch() as path:
        archive = path / "debian.tar"
        options = ("--variant=minbase", "--include=ca-certificates")
        command.run("mmdebstrap", *options, "bookworm", archive)
        command.run("docker", "import", "-c", "ENV LANG=C.UTF-8", archive, STAND_IN)
    return STAND_IN
