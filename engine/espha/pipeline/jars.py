"""Where our own few Java classes are, and which archive of classes fits them."""

import os
from pathlib import Path

OWN_JARS = {"engine": "espha-engine.jar", "kafka": "espha-broker.jar"}
"""Of an engine's JVM, and of a broker's."""
_IMAGE = Path("/opt/espha/jars")


def own_folder() -> Path:
    """Return where the build of a wheel puts our jars; in a checkout it is not there."""
    return Path(__file__).with_name("jars")


def jars_folder() -> Path:
    """Return the directory with the engine's jar: $ESPHA_JARS, else the wheel's, or the image's."""
    chosen = os.environ.get("ESPHA_JARS")
    if chosen:
        return Path(chosen)
    return own_folder() if (own_folder() / OWN_JARS["engine"]).is_file() else _IMAGE


def archive_beside(jars: Path) -> Path:
    """Return where the archive of the JVM's classes is, if there is one."""
    return jars.parent / "espha.jsa"


def unfinished(archive: Path) -> Path:
    """Return where an archive is written, which no JVM must take before it is whole."""
    return archive.with_suffix(".unfinished")


def class_path_facts(*folders: Path) -> str:
    """Return what a JVM holds an archive of classes against: each jar's path, size and time.

    The same jars, unpacked anew in the same place, do not fit an archive that was made of the old
    ones.
    """
    jars = [(jar, jar.stat()) for folder in folders for jar in sorted(folder.glob("*.jar"))]
    return "\n".join(f"{jar} {stat.st_size} {stat.st_mtime_ns}" for jar, stat in jars)
