"""Where our own few Java classes are."""

import os
from pathlib import Path

OWN_JAR = "espha-engine.jar"
_IMAGE = Path("/opt/espha/jars")


def own_folder() -> Path:
    """Return where the build of a wheel puts our jar; in a checkout it is not there."""
    return Path(__file__).with_name("jars")


def jars_folder() -> Path:
    """Return the directory with our jar: $ESPHA_JARS, else the wheel's, else the image's."""
    chosen = os.environ.get("ESPHA_JARS")
    if chosen:
        return Path(chosen)
    return own_folder() if (own_folder() / OWN_JAR).is_file() else _IMAGE
