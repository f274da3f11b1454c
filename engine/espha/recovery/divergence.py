"""What an engine remembers of having made something else of an order record than the active one.

It must not build again on the state that went wrong, and people must see that it happened, also
after restarts: so it is kept beside the snapshots, as `diverged.json`.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from espha.durable import replace_file
from espha.protocol.status import DivergenceFacts
from espha.recovery.store import DIVERGED, SnapshotStore

_NAME = "diverged.json"
_AGAIN = 2
_ALONE = 4
_ALONE_FOR_LONG = 8
_RECENT_S = 600.0
_LONGEST_PAUSE_S = 60.0
_FINISHING_S = 10.0
"""So long a snapshot that is nearly there is waited for; a volume may hang."""
_LOG = structlog.get_logger()


class Divergence(BaseModel):
    """The last divergence of an engine."""

    model_config = ConfigDict(frozen=True)

    total: int = 0
    message: str = ""
    model: str = ""
    """Digest of the model of which that was; empty: not known."""
    before: int | None = None
    """Only snapshots of lower sequence may be built on; None: all."""
    at: int | None = None
    """The order record that it made something else of; None: it is over."""
    times: int = 0
    """How often in a row it has come to that record."""
    broken: tuple[tuple[str, int], ...] = ()
    """Input records (topic, offset) that it cannot process, and the active engine could."""
    recent: tuple[float, ...] = ()
    """Seconds since 1970 of the divergences of the last ten minutes."""

    @property
    def behind(self) -> int | None:
        """Only snapshots of this sequence or a higher one may be built on; None: all.

        The record has been computed twice, with the same end: only who has gone behind it knows.
        """
        return self.at if self.times >= _AGAIN else None

    @property
    def pause_s(self) -> float:
        """How long to wait before others are asked for their state, which costs them something."""
        return min(_LONGEST_PAUSE_S, 5.0 * 2.0 ** (len(self.recent) - 3)) if self.recent[2:] else 0

    @property
    def is_stuck(self) -> bool:
        """It has also waited for others' state in vain, and may have to help itself."""
        return self.times >= _ALONE

    @property
    def is_stuck_for_long(self) -> bool:
        """It has waited for minutes: others whose machines were away would be back."""
        return self.times >= _ALONE_FOR_LONG


class DivergenceLog:
    """Keeps an engine's `Divergence`; without a folder, for the life of the process."""

    def __init__(self, store: SnapshotStore | None) -> None:
        self._store, self._model = store, ""
        self._finishing, self._condemned = threading.Lock(), False
        self._has_state = False
        self.last = self._read()

    def condemn(self) -> None:
        """Let no snapshot of this life's state be finished any more: the state is wrong.

        One that is being finished is waited for.
        """
        held = self._finishing.acquire(timeout=_FINISHING_S)
        self._condemned = True
        if held:
            self._finishing.release()

    @contextlib.contextmanager
    def finishing(self) -> Iterator[bool]:
        """Hold while a snapshot is being finished; yields whether this life's state counts."""
        with self._finishing:
            yield not self._condemned

    def diverged(
        self, sequence: int, base: int, message: str, broken: tuple[str, int] | None = None
    ) -> None:
        """Note a divergence.

        The first time the engine goes back before the order record, without its own snapshots since
        `base`. At the same record once more it takes a state from behind it, and keeps what it has
        from before it for the case that nobody has one. At another one it goes back before what it
        had built on.

        Args:
            sequence: the order record.
            base: sequence of the snapshot that the state was built on; 0: the whole log.
            message: what differs, for people.
            broken: topic and offset of the input record that could not be processed, if that is it.
        """
        self._has_state = False
        last = self.last
        times = last.times + 1 if last.at == sequence else 1
        before = None
        if times < _AGAIN:
            before = sequence if last.at is None else min(base, sequence)
        if self._store:
            older = self._store.files(before=base if times < _AGAIN else sequence)
            for file in self._store.files():
                if file not in older:
                    self._store.set_aside(file, DIVERGED)
        now = time.time()
        self._keep(
            Divergence(
                total=last.total + 1,
                message=message,
                model=self._model,
                before=before,
                at=sequence,
                times=times,
                broken=last.broken if broken in (None, *last.broken) else (*last.broken, broken),
                recent=(*(one for one in last.recent if now - _RECENT_S < one <= now), now),
            )
        )
        _LOG.error("diverged; the state is rebuilt", **self.last.model_dump(exclude={"message"}))

    def give_up_going_back(self) -> None:
        """Note that there is no state from before the record: one from behind it is taken."""
        times = max(self.last.times, _AGAIN)
        self._keep(self.last.model_copy(update={"before": None, "times": times}))

    def meant_for(self, model: str) -> None:
        """Forget what another model's state has gone wrong with; note the model from now on."""
        if self.last.model not in ("", model):
            self.last = Divergence(total=self.last.total, message=self.last.message)
        self._model = model

    def waited(self) -> None:
        """Note that nobody had a state from behind the record in this life."""
        self._keep(self.last.model_copy(update={"times": self.last.times + 1}))

    def began(self) -> None:
        """Note that this life has a state to go on from: it waits for nobody's."""
        self._has_state = True

    @property
    def waits_behind(self) -> int | None:
        """The order record from behind which somebody else's state is needed; None: it is there.

        What is on the own volume is somebody else's: what this engine had written was set aside.
        """
        behind = None if self._has_state else self.last.behind
        held = behind is not None and self._store and self._store.files(at_least=behind)
        return None if held else behind

    def settle(self) -> None:
        """Note that the engine has been in sync since: its newer snapshots are good."""
        if self.last.at is not None or self.last.before is not None:
            over = {"before": None, "at": None, "times": 0, "broken": ()}
            self._keep(self.last.model_copy(update=over))

    def facts(self) -> DivergenceFacts:
        """Return what the status shows."""
        return DivergenceFacts(
            diverged_total=self.last.total,
            diverged=self.last.message,
            diverged_at=self.waits_behind,
        )

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
