"""The jars: others' from Maven, held against a list of checksums; our own from the wheel.

`pom.xml` beside this file says which jars there are, `jars.sha256` what must be in them. Each
profile is resolved once into the cache directory. Our own few classes are compiled by the build of
the wheel, or by `make jars` in a checkout.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from espha.local import cache
from espha.local.errors import LocalError
from espha.local.java import check_java
from espha.pipeline.jars import OWN_JARS, archive_beside, class_path_facts, own_folder

POM = Path(__file__).with_name("pom.xml")
SUMS = Path(__file__).with_name("jars.sha256")
PROFILES = ("kafka", "zookeeper", "engine")
STAMP = ".pom-digest"
_TAIL = 3
_FORGET_S = 30 * 86_400
_LEAST_URGENT = 19
Announce = Callable[[str], None]


def resolved(profile: str, announce: Announce) -> Path:
    """Return the directory with others' jars of a profile; Maven fills it where they are missing.

    Args:
        profile: one of `PROFILES`.
        announce: is told before something that takes long.

    Raises:
        LocalError: Maven is missing or cannot resolve the jars, or one is not what it must be.
    """
    target = cache.jars(profile)
    wanted = wanted_sums(profile)
    with cache.lock(f"jars-{profile}"):
        if any(not (target / name).is_file() for name in wanted):
            announce(f"resolving the jars of {profile}")
            with cache.scratch() as path:
                fresh = path / profile
                copy_dependencies(profile, fresh)
                check_sums(profile, fresh)
                _place(fresh, target)
    return target


def copy_dependencies(profile: str, target: Path) -> None:
    """Have Maven copy a profile's jars, with checksums that must be right.

    Raises:
        LocalError: Maven is missing, or fails; with what it says.
    """
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={target}")
    command = ["mvn", "-q", "-B", "-C", "-f", str(POM), "-P", profile, *goal]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LocalError(
            "Maven is missing; it fetches the jars of Kafka and ZooKeeper once: install it "
            "(Debian: maven)"
        ) from None
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
        said = " ".join(line.removeprefix("[ERROR]").strip() for line in errors[:_TAIL])
        raise LocalError(
            f"Maven cannot fetch the jars of {profile}: {said[:500]} (they are fetched once; "
            "is there a network, and does Maven know your mirror?)"
        )


def wanted_sums(profile: str) -> dict[str, str]:
    """Return SHA-256 by file name for a profile's jars."""
    wanted = {}
    for line in SUMS.read_text().splitlines():
        total, path = line.split()
        folder, _, name = path.partition("/")
        if folder == profile:
            wanted[name] = total
    return wanted


def check_sums(profile: str, folder: Path) -> None:
    """Compare jars with the list.

    Raises:
        LocalError: one is missing, unknown, or has another content.
    """
    wanted = wanted_sums(profile)
    found = {path.name: digest(path) for path in folder.glob("*.jar")}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise LocalError(
                f"{name} ({profile}) is not the jar that it must be: its SHA-256 is "
                f"{found.get(name, 'unknown, since it is missing')}, {SUMS.name} says "
                f"{wanted.get(name, 'nothing of it')}"
            )


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def engine_home(announce: Announce) -> Path:
    """Return the directory with all jars of an engine, ours too.

    It is made once for each combination of our jar, others' jars, Spark's jars and Java.

    Raises:
        LocalError: a jar is missing.
    """
    others, own = resolved("engine", announce), own_jar("engine")
    parts = [digest(own), *wanted_sums("engine").values(), _spark_facts(), check_java()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    home = cache.directory() / f"engine-{key}"
    with cache.lock("engine-home"):
        if not home.is_dir():
            with cache.scratch() as path:
                _fill(path / "jars", others, own)
                path.chmod(0o755)
                path.rename(home)
        os.utime(home)
        _forget_old()
    return home / "jars"


def _forget_old() -> None:
    """Remove what no deployment has been brought up with for long: 180 MB each."""
    for home in cache.directory().glob("engine-" + "[0-9a-f]" * 16):
        if time.time() - home.stat().st_mtime > _FORGET_S:
            shutil.rmtree(home)


def _fill(folder: Path, others: Path, own: Path) -> None:
    folder.mkdir()
    for name in wanted_sums("engine"):
        shutil.copy2(others / name, folder / name)
    shutil.copy2(own, folder / own.name)


def archive_later(jars: Path) -> None:
    """Begin to write the archive of the JVM's classes, if there is none, and do not wait for it.

    It halves what the next start of an engine costs. It takes half a minute of a processor, so it
    is for when a deployment is up, and yields to everything else.
    """
    if not archive_beside(jars).exists():
        subprocess.Popen(
            [sys.executable, "-m", "espha.local.jars", str(jars)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _archive(jars: Path) -> None:
    """Have a JVM write down its classes; it can only use an archive of its very class path."""
    os.nice(_LEAST_URGENT)
    with cache.lock("archive"), (jars.parent / "archive.log").open("w") as log:
        if not archive_beside(jars).exists():
            subprocess.run(
                [sys.executable, "-m", "espha.pipeline.archive"],
                env={**os.environ, "ESPHA_JARS": str(jars)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )


def own_jar(profile: str) -> Path:
    """Return our own jar of a profile: of the wheel, else the one that a checkout has compiled.

    Raises:
        LocalError: there is none.
    """
    name = OWN_JARS[profile]
    for folder in (own_folder(), cache.jars(profile)):
        if (folder / name).is_file():
            return folder / name
    raise LocalError(
        f"{name} is not in this installation; install espha from its wheel, or run `make jars` "
        "in a checkout"
    )


def spark() -> str:
    """Return the directory of this Python's Spark.

    Raises:
        LocalError: there is none.
    """
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise LocalError("pyspark is not installed: pip install 'espha[engine]'")
    return str(found.submodule_search_locations[0])


def _spark_facts() -> str:
    return class_path_facts(Path(spark()) / "jars")


def _place(fresh: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    old = fresh.with_name("old")
    if target.exists():
        for own in OWN_JARS.values():
            if (target / own).exists():
                shutil.copy2(target / own, fresh / own)
        target.rename(old)
    shutil.move(fresh, target)


if __name__ == "__main__":
    _archive(Path(sys.argv[1]))
