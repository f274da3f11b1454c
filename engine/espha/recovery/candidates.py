"""Which snapshots an engine can begin with, the best one first.

1. The newest one on its own volume that is whole and fits.
2. Before it, a peer's that is newer by much, or where there is none of its own: it is taken over
   HTTP, verified, and kept on the own volume.
3. The older ones of its own, then those of peers that are not much newer.
4. Where nobody can recompute the order log, those of its own that are kept as a last resort: they
   could not be restored here, or a divergence has put them in doubt.

One fits when it is of the same model, of the same topics (not of topics that were deleted and made
anew), and when the topics still hold everything that comes after it, and have not lost what it
stands for. After a divergence only those before it count. What is passed over is said in the log,
by name and with the reason.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import structlog

from espha.recovery import remote
from espha.recovery.store import (
    DOUBTED,
    REFUSED,
    Header,
    OtherFormatError,
    Snapshot,
    SnapshotError,
    SnapshotStore,
    check,
)

Resumed = Callable[[int], Mapping[str, int]]
"""Which inputs the order log behind an offset has go on, and where, before it names any of them."""
MUCH_NEWER = 1000
"""Order records that an engine replays rather than to load a peer with the transfer."""
_LOG = structlog.get_logger()


class Refusal(NamedTuple):
    """Why a snapshot does not fit."""

    reason: str
    aside: str | None = REFUSED
    """Under which ending it is set aside; None: it stays, for people can make it fit."""


class Requirements(NamedTuple):
    """What a snapshot must fit."""

    model: str
    order_log: str
    """Topic of the order log."""
    topics: Mapping[str, str]
    """Id of the order log and of each input topic."""
    first: Mapping[str, int]
    """Oldest offset that each of them still holds."""
    end: Mapping[str, int] = MappingProxyType({})
    """Offset behind the newest record that each of them holds, committed or not."""
    since: int | None = None
    """Order record behind which the model began with empty state; None: whichever."""
    resumed: Resumed = lambda offset: {}

    @property
    def is_cut(self) -> bool:
        """Whether the order log no longer reaches back to its beginning."""
        return self.first[self.order_log] > 0

    def refuse(self, header: Header) -> Refusal | None:
        """Return why a snapshot does not fit; None when it fits."""
        if header.model != self.model:
            return Refusal(f"it is of model {header.model[:12]}, this one is {self.model[:12]}")
        if self.since is not None and header.since != self.since:
            return Refusal(
                f"its model began behind order record {header.since}, this one behind {self.since}"
            )
        for topic, known in self.topics.items():
            if header.topics.get(topic) != known:
                return Refusal(f"topic {topic} is another one than then")
        reads = {self.order_log: header.order_log}
        reads |= {topic: place.read for topic, place in header.inputs.items()}
        for topic, read in reads.items():
            refusal = self._refuse_at(topic, read, header)
            if refusal:
                return refusal
        return None

    def _refuse_at(self, topic: str, read: int, header: Header) -> Refusal | None:
        """Return why a topic does not fit a snapshot that goes on at offset `read` of it."""
        if topic not in self.first:
            return Refusal(f"topic {topic} is no input of this model")
        first = self.first[topic]
        if first > read:
            gone = f"topic {topic}: records {read} to {first - 1} come next after it, and retention"
            if topic == self.order_log:
                return Refusal(f"{gone} has removed them")
            if self.resumed(header.order_log).get(topic, 0) < first:
                skip = "`espha skip` lets engines go on behind them"
                return Refusal(f"{gone} has removed them; {skip}", None)
        # The marker behind a topic's last record may come a moment after the record.
        elif topic in self.end and self.end[topic] < read - 1:
            return Refusal(
                f"topic {topic} ends at offset {self.end[topic]}, and the snapshot stands for "
                f"all before {read}: the topic has lost its end",
                DOUBTED,  # or a broker that is cut off from the others says so
            )
        return None


@dataclass
class SnapshotCandidates:
    """Finds snapshots to begin with; `refusals` says what was passed over and why."""

    store: SnapshotStore | None
    peers: Sequence[str]
    requirements: Requirements
    spare: Path
    """Folder for a peer's snapshot that the own volume, or none, has no room for."""
    before: int | None = None
    """Only those of lower sequence."""
    at_least: int = 0
    """Only those of this sequence or a higher one."""
    refusals: list[str] = field(default_factory=list)
    token: str = ""
    """The deployment's, for its peers; empty: it has none."""
    last_resort: Collection[str] = ()
    """Kinds of the store's that are tried when nothing else fits."""

    def best_first(self) -> Iterator[Snapshot]:
        """Yield snapshots that are whole and fit, the best one first."""
        doubtful = self._doubtful()
        own = self._own()
        best = next(own, None)
        others = self._offers()
        held = best.header.sequence if best else -MUCH_NEWER
        newer = [address for address, at in others if at >= held + MUCH_NEWER]
        yield from self._taken(newer)
        if best:
            yield best
        yield from own
        yield from self._taken([address for address, _ in others if address not in newer])
        yield from filter(None, map(self._read, doubtful))

    def refuse(self, name: str, reason: str) -> None:
        """Note that a snapshot is passed over."""
        self.refusals.append(f"{name}: {reason}")
        _LOG.warning("snapshot passed over", snapshot=name, reason=reason)

    def _own(self) -> Iterator[Snapshot]:
        files = self.store.files(self.before, self.at_least) if self.store else []
        yield from filter(None, map(self._read, files))

    def _doubtful(self) -> list[Path]:
        """Return those of last resort: what this life has in doubt is none for it."""
        return self.store.last_resort(self.last_resort, self.before) if self.store else []

    def _read(self, path: Path) -> Snapshot | None:
        try:
            snapshot = check(path)
        except OSError as error:
            self.refuse(path.name, str(error.strerror))
            return None
        except OtherFormatError as error:
            refusal = Refusal(str(error), None)
        except SnapshotError as error:
            refusal = Refusal(str(error))
        else:
            found = self.requirements.refuse(snapshot.header)
            if found is None:
                return snapshot
            refusal = found
        self.refuse(path.name, refusal.reason)
        if refusal.aside and self.store:
            self.store.set_aside(path, refusal.aside)
        return None

    def _offers(self) -> list[tuple[str, int]]:
        """Return peers with a snapshot that fits and its sequence, the newest first."""
        if not self.peers:
            return []
        with ThreadPoolExecutor(len(self.peers)) as pool:
            headers = list(pool.map(self._probe, self.peers))
        offers = [
            (address, header.sequence)
            for address, header in zip(self.peers, headers, strict=True)
            if header
        ]
        return sorted(offers, key=lambda offer: -offer[1])

    def _probe(self, address: str) -> Header | None:
        try:
            header = remote.probe(address, self.before, self.requirements.model, self.token)
        except SnapshotError as error:
            self.refuse(f"that of {address}", str(error))
            return None
        reason = self._refuse(header) if header else ""
        if reason:
            self.refuse(f"that of {address}", reason)
        return None if reason else header

    def _refuse(self, header: Header) -> str:
        if header.sequence < self.at_least:
            return f"it stands for order record {header.sequence}, not for {self.at_least}"
        refusal = self.requirements.refuse(header)
        return refusal.reason if refusal else ""

    def _taken(self, offering: Sequence[str]) -> Iterator[Snapshot]:
        for address in offering:
            snapshot = self._take(address)
            if snapshot:
                yield snapshot

    def _take(self, address: str) -> Snapshot | None:
        try:
            snapshot = self._fetched(address)
        except (SnapshotError, OSError) as error:
            self.refuse(f"that of {address}", str(error))
            return None
        reason = self._refuse(snapshot.header) if snapshot else "it is gone"
        if snapshot is None or reason:
            self.refuse(f"that of {address}", reason)
            return None
        _LOG.info("snapshot taken", peer=address, sequence=snapshot.header.sequence)
        return snapshot

    def _fetched(self, address: str) -> Snapshot | None:
        model = self.requirements.model
        if self.store:
            try:
                return remote.fetch(address, self.before, self.store, model, self.token)
            except OSError as error:
                _LOG.warning("snapshot not kept", error=error.strerror)
        spare = SnapshotStore(self.spare)
        return remote.fetch(address, self.before, spare, model, self.token)
