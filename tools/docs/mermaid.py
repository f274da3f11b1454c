"""Mermaid, which draws the diagrams, as a file of the site: the site must work offline.

Material for MkDocs has readers' browsers load it from elsewhere unless it is there already.
"""

import hashlib
import tarfile
from pathlib import Path
from typing import Final

from tools.offline_cluster import cache, command, debian
from tools.offline_cluster.say import Failure, step

VERSION: Final = "11.16.0"
"""Of the major version that Material for MkDocs expects."""
_SHA256: Final = "74d7c46dabca328c2294733910a8aa1ed0c37451776e8d5295da38a2b758fb9b"
_MEMBER: Final = "package/dist/mermaid.min.js"


def script() -> Path:
    """Return the file; npm fetches it once.

    Raises:
        Failure: npm is missing or fails, or the file is another one.
    """
    return cache.once("mermaid", cache.digest(VERSION, _SHA256), _fetch) / "mermaid.min.js"


def _fetch(target: Path) -> None:
    debian.need("npm", "npm")
    with step("fetching mermaid"), cache.scratch() as path:
        command.run("npm", "pack", "--silent", "--pack-destination", path, f"mermaid@{VERSION}")
        with tarfile.open(path / f"mermaid-{VERSION}.tgz") as archive:
            member = archive.extractfile(_MEMBER)
            content = member.read() if member else b""
    found = hashlib.sha256(content).hexdigest()
    if found != _SHA256:
        raise Failure(f"mermaid {VERSION} has another checksum than expected: {found}")
    (target / "mermaid.min.js").write_bytes(content)
