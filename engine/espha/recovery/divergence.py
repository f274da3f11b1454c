"""What an engine remembers of having computed other outputs than the active one.

It must not build again on the state that went wrong, and people must see that it happened, also
after restarts: so it is kept beside the snapshots, as `diverged.json`.
"""

from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from espha.durable import replace_file
from espha.protocol.status import DivergenceFacts
from espha.recovery.store import SnapshotStore

_NAME = "diverged.json"
_LOG = structlog.get_logger()


class Divergence(BaseModel):
    """The last divergence of an engine."""

    model_config = ConfigDict(frozen=True)

    total: int = 0
    message: str = ""
    before: int | None = None
    """Only snapshots of lower sequence may be built on; None: it is over."""


class DivergenceLog:
    """Keeps an engine's `Divergence`; without a folder, for the life of the process."""

    def __init__(self, store: SnapshotStore | None) -> None:
        self._store = store
        self.last = self._read()

    def diverged(self, sequence: int, base: int, message: str) -> None:
        """Note a divergence.

        The first time the engine goes back before the order record that differs, without its own
        snapshots since `base`; when it then differs again, before what it had built on, and so
        on, at last to the beginning of the order log.

        Args:
            sequence: the order record whose outputs differ.
            base: sequence of the snapshot that the state was built on; 0: the whole log.
            message: what differs, for people.
        """
        before = sequence if self.last.before is None else base
        if self._store:
            older = self._store.files(before=base)
            for file in self._store.files():
                if file not in older:
                    self._store.set_aside(file)
        self._keep(Divergence(total=self.last.total + 1, message=message, before=before))
        _LOG.error("diverged; the state is rebuilt", before=before, total=self.last.total)

    def settle(self) -> None:
        """Note that the engine has been in sync since: its newer snapshots are good."""
        if self.last.before is not None:
            self._keep(self.last.model_copy(update={"before": None}))

    def facts(self) -> DivergenceFacts:
        """Return what the status shows."""
        return DivergenceFacts(diverged_total=self.last.total, diverged=self.last.message)

    @property
    def _path(self) -> Path | None:
        return self._store.folder / _NAME if self._store else None

    def _keep(self, divergence: Divergence) -> None:
        self.last = divergence
        if self._path:
            try:
                replace_file(self._path, [divergence.model_dump_json().encode()])
            except OSError as error:
                _LOG.error("cannot be kept", file=str(self._path), error=error.strerror)

    def _read(self) -> Divergence:
        try:
            if self._path and self._path.exists():
                return Divergence.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError) as error:
            _LOG.error("unreadable", file=str(self._path), error=str(error))
        return Divergence()
