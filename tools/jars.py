"""The jars of Kafka, ZooKeeper and the engine, resolved once: `python -m tools.jars [NAME …]`."""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from espha.local.errors import LocalError
from espha.local.jars import POM, PROFILES, check_sums, copy_dependencies
from espha.pipeline.jars import OWN_JARS, archive_beside, class_path_facts
from tools import ROOT
from tools.offline_cluster import cache, command, debian
from tools.offline_cluster.say import Failure, program, step

SOURCES = {"engine": ROOT / "engine" / "java", "kafka": ROOT / "engine" / "java-broker"}
"""Our own few classes, of an engine's JVM and of a broker's."""
STAMP = ".pom-digest"
JAR_DATE = "2026-01-01T00:00:00Z"
"""The same classes give the same jar, and so the same image."""


def directory(profile: str) -> Path:
    """Return the directory of a profile's jars, and have Maven fill it where the pom is new.

    Raises:
        Failure: no such profile, or Maven cannot resolve it.
    """
    if profile not in PROFILES:
        raise Failure(f"no jars named {profile}; there are {', '.join(PROFILES)}")
    target = cache.directory() / "jars" / profile
    key = cache.digest(POM, profile, SOURCES.get(profile, ""))
    stamp = target / STAMP
    with cache.lock(f"jars-{profile}"):
        if not (stamp.is_file() and stamp.read_text() == key):
            _resolve(profile, key, target)
    return target


def _resolve(profile: str, key: str, target: Path) -> None:
    debian.need("mvn", "maven")
    with step(f"resolving the jars of {profile}"), cache.scratch() as path:
        fresh = path / profile
        try:
            copy_dependencies(profile, fresh)
            check_sums(profile, fresh)
        except LocalError as error:
            raise Failure(str(error)) from None
        if profile in SOURCES:
            compile_own(profile, fresh, path / "classes")
        (fresh / STAMP).write_text(key)
        target.parent.mkdir(exist_ok=True)
        if target.exists():
            target.rename(path / "old")
        shutil.move(fresh, target)


def archives() -> list[Path]:
    """Return the archives of classes of an engine's JVM and of a broker; make what is missing."""
    engine, kafka = directory("engine"), directory("kafka")
    program = (sys.executable, "-m", "espha.pipeline.archive")
    started_by = [
        (ROOT / "engine" / "espha" / name).read_text()
        for name in ("jvm.py", "pipeline/gateway.py", "pipeline/session.py", "pipeline/archive.py")
    ]
    by = "\n".join([class_path_facts(_spark() / "jars"), *started_by])
    own = _archive(archive_beside(engine), engine, *program, by=by)
    script = ROOT / "images" / "kafka" / "start" / "kafka-archive"
    target = kafka.with_suffix(".jsa")
    return [own, _archive(target, kafka, "sh", script, kafka, target, by=script.read_text())]


def _archive(target: Path, libraries: Path, *program: str | Path, by: str) -> Path:
    """Have a program make an archive, unless there is one of these very files, by this program."""
    stamp = target.with_suffix(".digest")
    key = cache.digest(class_path_facts(libraries), by, command.run("java", "-Xinternalversion"))
    with cache.lock(f"archive-{target.stem}"):
        if not (target.is_file() and stamp.is_file() and stamp.read_text() == key):
            with step(f"archiving the classes of {libraries.name}"):
                target.unlink(missing_ok=True)
                command.run(*program, env={"ESPHA_JARS": str(libraries)})
                stamp.write_text(key)
    return target


def _spark() -> Path:
    """Return the directory of the virtual environment's Spark."""
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise Failure("there is no pyspark beside this Python; run this by make")
    return Path(found.submodule_search_locations[0])


def compile_own(profile: str, jars: Path, classes: Path) -> None:
    """Compile our own few classes of a profile into a jar beside its others.

    Args:
        profile: a key of `SOURCES`.
        jars: directory of its jars; those of the engine also need the virtual environment's Spark.
        classes: directory for the compiler.
    """
    debian.need("javac", "openjdk-17-jdk-headless")
    own = SOURCES[profile]
    sources = sorted(own.rglob("*.java"))
    libraries = f"{_spark()}/jars/*:{jars}/*" if profile == "engine" else f"{jars}/*"
    options = ("--release", "17", "-nowarn", "-cp", libraries, "-d", classes)
    command.run("javac", *options, *sources)
    for resource in own.glob("*.xml"):
        shutil.copy(resource, classes)
    jar = jars / OWN_JARS[profile]
    command.run("jar", "--create", "--file", jar, "--date", JAR_DATE, "-C", classes, ".")


def main() -> None:
    """Resolve the profiles that are named, or all of them."""
    for profile in sys.argv[1:] or PROFILES:
        print(directory(profile))
    if not sys.argv[1:]:
        for archive in archives():
            print(archive)


if __name__ == "__main__":
    program(main)
