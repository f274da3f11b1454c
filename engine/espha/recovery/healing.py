"""How an engine gets over an order record that it cannot recompute.

When it has come to the same record twice and made something else of it each time, going back once
more changes nothing. What the log says is the truth, and the active engine has the state that
belongs to it: that engine is asked to write a snapshot, which this one then takes.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog

from espha.protocol.http import TIMEOUT_S, NoAnswerError, ask, ask_status
from espha.protocol.snapshots import SNAPSHOT
from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus

_LOOK_S = 0.5
_ASK_AGAIN_S = 10.0
_STILL_S = 300.0
"""Nothing comes of snapshots for so long: a large state takes its time, beside other work."""
_NOBODY_S = 15.0
"""So long there is no active engine: nobody takes over, or this one is needed."""
_SOON_S = 0.3
"""For a question of somebody who has something else to do."""
_LOG = structlog.get_logger()

Statuses = dict[str, ReplicaStatus]


class NoStateError(Exception):
    """Nobody has a state from behind the order record; the text says why, for people.

    Attributes:
        hopeless: each other replica that there is says that it waits for others' state, too: nobody
            will ever have one.
        unlikely: nobody who answers is in sync, or there are no other replicas. Those that begin
            anew, or do not answer now, may have one.
    """

    def __init__(self, text: str, hopeless: bool = False, unlikely: bool = False) -> None:
        super().__init__(text)
        self.hopeless, self.unlikely = hopeless, unlikely


def statuses(peers: Sequence[str], name: str, limit_s: float = TIMEOUT_S) -> Statuses:
    """Return what other replicas say of themselves, by address.

    Those that do not answer within `limit_s` lack.
    """
    every = _answers(peers, limit_s)
    return {at: status for at, status in every.items() if status and status.name != name}


def hope(peers: Sequence[str], name: str, sequence: int) -> tuple[bool, bool]:
    """Return whether it is hopeless, or unlikely, that others have a state (`NoStateError`).

    One that waits for a state from behind a later order record than `sequence` has been there.

    A replica that is down has an address, as long as its pod has one. So nobody else is there when
    this replica's own address is the only one.
    """
    every = list(_answers(peers, TIMEOUT_S).values())
    others = [one for one in every if one is None or one.name != name]
    known = [one for one in others if one is not None]
    if not every or any(one.in_sync for one in known):
        return False, False
    waiting = [one for one in known if one.diverged_at is not None and one.diverged_at <= sequence]
    return bool(others) and len(waiting) == len(others), bool(known) or not others


def _answers(peers: Sequence[str], limit_s: float) -> dict[str, ReplicaStatus | None]:
    def asked(address: str) -> ReplicaStatus | None:
        try:
            return ask_status(address, limit_s)
        except NoAnswerError:
            return None

    if not peers:
        return {}
    try:
        with ThreadPoolExecutor(len(peers)) as pool:
            return dict(zip(peers, pool.map(asked, peers), strict=True))
    except RuntimeError as error:  # no thread is left
        _LOG.error("nobody can be asked", error=repr(error))
        return dict.fromkeys(peers)


def newest(peers: Sequence[str], name: str) -> int:
    """Return the newest order record that other replicas have processed, as far as they say it."""
    told = statuses(peers, name, _SOON_S).values()
    return max((one.engine.sequence for one in told if one.engine), default=0)


def have_snapshot_written(
    peers: Callable[[], Sequence[str]],
    name: str,
    token: str,
    sequence: int,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until another replica has a snapshot from behind an order record; ask for one.

    Args:
        peers: returns the addresses of supervisors.
        name: this replica's name.
        token: the deployment's.
        sequence: the order record.
        clock: seconds; for tests.
        sleep: likewise.

    Raises:
        NoStateError: nobody has one, and nothing moves any more.
    """
    moved = active_seen = clock()
    asked = -_ASK_AGAIN_S
    before: object = None
    while True:
        told = statuses(peers(), name)
        if any(_has(status, sequence) for status in told.values()):
            return
        now = clock()
        picture = {at: _picture(status) for at, status in told.items()}
        if picture != before:
            before, moved = picture, now
        active = [at for at, one in told.items() if one.state is EngineState.ACTIVE]
        if active:
            active_seen = now
        if active and now - asked >= _ASK_AGAIN_S:
            asked = now
            _ask(active[0], token)
        if now - active_seen > _NOBODY_S:
            text = f"nobody is active who could have {_wanted(sequence)}"
            raise NoStateError(text, *hope(peers(), name, sequence))
        if now - moved > _STILL_S:
            raise NoStateError(f"{active[0]} does not write {_wanted(sequence)}")
        sleep(_LOOK_S)


def sides(told: Statuses, sequence: int, state: str = "") -> str:
    """Say who else has come to another end at an order record, and who has not; may be empty.

    When more of them have, the one that is alone may be the active engine. `state` is the digest of
    this replica's state after the record, where that is what differs.
    """
    mark = f"order record {sequence}: "
    likewise = sorted(
        one.name
        for one in told.values()
        if one.diverged.startswith(mark)
        or (state and one.engine and one.engine.checkpoint_digest == state)
    )
    others = sorted(
        one.name
        for one in told.values()
        if one.in_sync
        and one.name not in likewise
        and one.engine
        and one.engine.sequence >= sequence
    )
    said = [f"{', '.join(others)} agree with the log"] if others else []
    said += [f"{', '.join(likewise)} differ there as well"] if likewise else []
    return f" ({'; '.join(said)})" if said else ""


def _wanted(sequence: int) -> str:
    return f"a snapshot from behind order record {sequence}"


def _has(status: ReplicaStatus, sequence: int) -> bool:
    kept = status.engine.snapshot_sequence if status.engine else None
    return kept is not None and kept >= sequence and status.in_sync


def _picture(status: ReplicaStatus) -> object:
    """Return what changes while a snapshot may still come; the order log goes on in any case."""
    engine = status.engine
    if engine is None:
        return status.state
    return status.state, engine.snapshot_sequence, engine.snapshot_failures


def _ask(address: str, token: str) -> None:
    try:
        answer = ask(address, SNAPSHOT, method="POST", token=token)
    except NoAnswerError as error:
        _LOG.warning("no snapshot was asked for", address=address, reason=error.why)
        return
    said = answer.body.decode(errors="replace").strip()
    _LOG.info("a snapshot is asked for", address=address, code=answer.code, said=said[:200])
