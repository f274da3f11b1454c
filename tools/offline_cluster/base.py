"""The Debian image under every image of ours: the published one, or a stand-in made here."""

from tools.offline_cluster import cache, command, debian, docker
from tools.offline_cluster.say import line, step

PUBLISHED = "debian:bookworm-slim"
STAND_IN = "espha/debian:bookworm"


def image(*, pull: bool = True) -> str:
    """Return the name of a Debian 12 image that Docker has: here, else pulled, else made here.

    Args:
        pull: whether to try; False where it has been found already that Docker cannot pull.

    Raises:
        Failure: it can neither be pulled nor made from Debian's packages.
    """
    for name in (STAND_IN, PUBLISHED):
        if docker.has(name):
            return name
    if pull and docker.pulled(PUBLISHED):
        return PUBLISHED
    debian.need("mmdebstrap", "mmdebstrap", "ca-certificates")
    line(f"Docker cannot pull {PUBLISHED}: making a Debian base image from packages")
    with step("making a Debian base image"), cache.scratch() as path:
        archive = path / "debian.tar"
        options = ("--variant=minbase", "--include=ca-certificates")
        command.run("mmdebstrap", *options, "bookworm", archive)
        command.run("docker", "import", "-c", "ENV LANG=C.UTF-8", archive, STAND_IN)
    return STAND_IN
