"""Volumes: whether they are as large as the spec says, and how full they are. Pure.

These facts are looked for now and then, beside the steps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

WARN, CRITICAL = 0.8, 0.9
"""Shares of a volume."""
# A message with one more percent would be one more write of the status.
_STEP = 5


@dataclass(frozen=True)
class Room:
    """A volume: whose it is, its bytes, and how many of them are used."""

    owner: str
    total: int
    used: int

    @property
    def share(self) -> float:
        """How much of it is used, 0 to 1."""
        return self.used / self.total if self.total else 0.0


@dataclass(frozen=True)
class DiskFacts:
    """What is known of the volumes.

    Attributes:
        rooms: of engines, brokers and ZooKeeper servers, as far as they are known.
        growing: claims that are to be larger than they are.
        pending: those of them whose pods must start again for it.
        waiting: uids of these pods.
        refused: why volumes cannot grow, as a sentence; empty: nobody has refused it.
        foreign: by component, why kept volumes do not fit the deployment, as a sentence; a
            component of which they do is not there.
        trim_held: why the logs are not trimmed, as a sentence; empty: they are, as far as they can.
        formatted: whether the brokers' volumes hold a cluster already.
        may_format: ordinals of brokers that may begin with an empty volume.
    """

    rooms: tuple[Room, ...] = ()
    growing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    waiting: frozenset[str] = frozenset()
    refused: str = ""
    foreign: Mapping[str, str] = field(default_factory=dict)
    trim_held: str = ""
    formatted: bool = False
    may_format: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Claim:
    """A PersistentVolumeClaim, as far as the operator looks at it.

    Attributes:
        name: `<volume>-<pod>`.
        component: kafka, zookeeper or engine.
        uid: differs when it was made anew.
        request: bytes asked for.
        capacity: bytes that the volume has; 0: it is not bound yet.
        owners: uids of those with which it goes.
        servers: how many servers there were when this one was part of them; None: never yet, as
            far as it is known.
        marked: whether an operator that marks claims has seen it.
        leaving: whether it is being deleted.
        made: when it was made, as Kubernetes writes times: of two, the text says which is older.
        pending: since when its volume is larger, and its file system is not; empty: it is not so.
    """

    name: str
    component: str
    uid: str = ""
    request: int = 0
    capacity: int = 0
    owners: frozenset[str] = field(default_factory=frozenset)
    servers: int | None = None
    marked: bool = False
    leaving: bool = False
    made: str = ""
    pending: str = ""

    @property
    def pod(self) -> str:
        """Name of its pod."""
        return self.name.partition("-")[2]

    @property
    def ordinal(self) -> int:
        """Number of its pod."""
        return int(self.name.rpartition("-")[2])


def pending(
    claims: Iterable[Claim], pods: Mapping[str, tuple[str, str]], before: str
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return claims whose file systems grow only when their pods start again, and these pods.

    Most storage lets a file system grow while it is used: the kubelet does that within a minute.
    A pod that has started since is not to be restarted once more.

    Args:
        claims: the volumes.
        pods: uid of each pod, and when it was made, by name.
        before: a volume that is larger since then has been given time enough.
    """
    late = [one for one in claims if one.pending and one.pending < before]
    uids = (
        uid
        for one in late
        for uid, made in [pods.get(one.pod, ("", ""))]
        if uid and made < one.pending
    )
    return tuple(one.name for one in late), frozenset(uids)


def fullest(rooms: Iterable[Room]) -> list[Room]:
    """Return the volumes that are nearly full, the fullest one first."""
    return sorted((one for one in rooms if one.share >= WARN), key=lambda one: -one.share)


def sentence(rooms: Iterable[Room]) -> str:
    """Say how full volumes are, in steps that do not change all the time."""
    return ", ".join(f"{one.owner} {_percent(one.share)}" for one in rooms)


def _percent(share: float) -> str:
    return f"more than {int(share * 100) // _STEP * _STEP} %"


def inherited(claims: Iterable[Claim], since: str) -> tuple[Claim, ...]:
    """Return claims with a number of servers for those that an older operator has left behind.

    It has marked none of them, so any may hold data. Where one of its component is marked, marks
    count: the servers of one that says nothing else have never served together.

    Args:
        claims: the volumes.
        since: when the deployment was made.
    """
    known = list(claims)
    marked = {one.component for one in known if one.marked}
    left = [one for one in known if one.component not in marked and is_left(one, since)]
    servers: dict[str, int] = {}
    for one in left:
        servers[one.component] = max(servers.get(one.component, 0), one.ordinal + 1)
    return tuple(
        replace(one, servers=servers[one.component]) if one in left else one for one in known
    )


def is_left(claim: Claim, since: str) -> bool:
    """Tell whether a claim is of an earlier deployment than the one that was made then."""
    return bool(claim.made) and claim.made < since


def foreign(name: str, component: str, servers: int, claims: Iterable[Claim]) -> str:
    """Say why kept volumes cannot serve so many servers; empty: they can.

    Two empty volumes beside one with data would be a majority, and elect one of themselves: what
    the third one holds would be lost.
    """
    other = [one for one in claims if one.component == component and one.servers is not None]
    wrong = sorted({one.servers for one in other if one.servers != servers and one.servers})
    if not wrong:
        return ""
    listed = ", ".join(sorted(one.name for one in other))
    return (
        f"Kept volumes ({listed}) are of {wrong[0]} servers of {component}, and the spec of {name} "
        f"says {servers}: give {wrong[0]}, or delete these claims."
    )


def may_format(
    servers: int, claims: Iterable[Claim], ends: Mapping[int, int], leader: int, certain: int
) -> tuple[bool, frozenset[int]]:
    """Say whether a Kafka exists already, and which brokers may begin with an empty volume.

    A new Kafka: all. Else a broker that comes with an empty volume has forgotten for what it has
    voted and what it has acknowledged. It is one voter among others again when everything that is
    certain lies on a majority without it.

    Args:
        servers: number of brokers, each of which is a controller as well.
        claims: the volumes.
        ends: by broker, the offset behind the last record of the controllers that it has.
        leader: the active controller; -1: there is none.
        certain: offset below which everything is on a majority.
    """
    mine = [one for one in claims if one.component == "kafka"]
    if all(one.servers is None for one in mine):
        return False, frozenset(range(servers))
    empty = {one.ordinal for one in mine if one.servers is None and not one.leaving}
    have = {broker for broker, end in ends.items() if end >= certain >= 0}
    allowed = {one for one in empty if leader not in (-1, one) and len(have - empty) * 2 > servers}
    return True, frozenset(allowed)
