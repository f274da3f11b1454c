"""The jars of Kafka, ZooKeeper and the engine, resolved once: `python -m dev.jars [profile …]`."""

import shutil
import sys
from pathlib import Path

from dev import cache, command, debian
from dev.say import Failure, program, step

POM = cache.ROOT / "images" / "jars" / "pom.xml"
PROFILES = ("kafka", "zookeeper", "engine")
STAMP = ".pom-digest"


def directory(profile: str) -> Path:
    """Returns the directory of a profile's jars, and has Maven fill it where the pom is new.

    Raises:
        Failure: no such profile, or Maven cannot resolve it.
    """
    if profile not in PROFILES:
        raise Failure(f"no jars named {profile}; there are {', '.join(PROFILES)}")
    target = cache.directory() / "jars" / profile
    key = cache.digest(POM, profile)
    stamp = target / STAMP
    with cache.lock(f"jars-{profile}"):
        if not (stamp.is_file() and stamp.read_text() == key):
            _resolve(profile, key, target)
    return target


def _resolve(profile: str, key: str, target: Path) -> None:
    debian.need("mvn", "maven")
    with step(f"resolving the jars of {profile}"), cache.scratch() as path:
        fresh = path / profile
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={fresh}")
        command.run("mvn", "-q", "-B", "-f", POM, "-P", profile, *goal)
        (fresh / STAMP).write_text(key)
        target.parent.mkdir(exist_ok=True)
        if target.exists():
            target.rename(path / "old")
        shutil.move(fresh, target)


def main() -> None:
    """Resolves the profiles that are named, or all of them."""
    for profile in sys.argv[1:] or PROFILES:
        print(directory(profile))


if __name__ == "__main__":
    program(main)
