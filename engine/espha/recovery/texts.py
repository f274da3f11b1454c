"""The models that a replica has run, kept beside its snapshots, and those of its peers.

A model's name here is its digest: what has another one is another model. So an engine can run the
model of the order log, whichever its pod has been given.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import structlog

from espha.durable import replace_file
from espha.protocol.http import NoAnswerError, ask
from espha.protocol.model_change import PATH

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KEPT = 8
_LOG = structlog.get_logger()


class Texts:
    """A folder of models, or, without one, none."""

    def __init__(self, snapshots: str) -> None:
        """Use the folder beside the snapshots in `snapshots`; empty: nothing is kept."""
        self._folder = Path(snapshots) / "models" if snapshots else None

    def keep(self, digest: str, xml: str) -> None:
        """Keep a model; a volume that cannot be written to is no error."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{digest}.xml"
            if not path.exists() or path.read_bytes() != xml.encode():
                replace_file(path, [xml.encode()])
            path.touch()
            newest = sorted(self._folder.glob("*.xml"), key=_changed, reverse=True)
            for old in newest[_KEPT:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _LOG.error("the model cannot be kept", digest=digest, error=error.strerror)

    def get(self, digest: str) -> str | None:
        """Return a model's XML; None where it is not here."""
        if self._folder is None or not _DIGEST.fullmatch(digest):
            return None
        try:
            return (self._folder / f"{digest}.xml").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def find(self, digest: str, peers: Sequence[str]) -> str | None:
        """Return a model's XML from here or from a peer; None where nobody has it."""
        found = self.get(digest)
        for address in peers:
            if found is not None:
                return found
            found = _from(address, digest)
        return found


def _from(address: str, digest: str) -> str | None:
    try:
        answer = ask(address, f"{PATH}/{digest}")
        return answer.body.decode() if answer.code == 200 else None
    except (NoAnswerError, UnicodeDecodeError):
        return None


def _changed(path: Path) -> float:
    return path.stat().st_mtime
