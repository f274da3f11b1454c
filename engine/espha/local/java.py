"""The Java that Kafka, ZooKeeper and Spark run on."""

import functools
import re
import shutil
import subprocess

from espha.jvm import java_program
from espha.local.errors import LocalError

OLDEST = 17
_HINT = "install a JRE (Debian: openjdk-17-jre-headless), or set JAVA_HOME to one"
_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)')


@functools.cache
def check_java() -> str:
    """Return what this machine's Java calls itself.

    Raises:
        LocalError: there is none, or it is too old.
    """
    program = java_program()
    if shutil.which(program) is None:
        raise LocalError(f"Java is missing: {_HINT}")
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LocalError(f"{program} does not run: {error}; {_HINT}") from None
    said = done.stderr + done.stdout
    version = _VERSION.search(said)
    if done.returncode or version is None:
        raise LocalError(f"{program} does not say its version; {_HINT}")
    if int(version[1]) < OLDEST:
        raise LocalError(
            f"{program} is Java {version[1]}, and {OLDEST} or newer is needed: {_HINT}"
        )
    return said
