"""A planned switchover: the active engine hands over, with nothing open and no restart.

1. The supervisor is asked (`POST /switchover`). It looks who stands for election, notes in
   ZooKeeper who the heir is, and tells its child.
2. The child commits one more batch, whose order record names the heir, and reports `standby`; its
   state stays. The heir reads that, and leads: ZooKeeper is not needed for it.
3. When the order log shows the heir's first commit, the supervisor goes to the end of the queue,
   where those between give way to the heir.

An heir that does not commit in time is forgotten: the old one goes on, unless the heir says that it
is taking over. Should the heir come late nevertheless, only one of the two can commit; the other
one stands behind it then.

A replica that is to end (SIGTERM: its pod is deleted, its node drained) hands over in the same way,
once. Nothing is open then, whatever comes of it: the end of its session elects the next one.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from espha.ha.child import Child
from espha.ha.election import Membership
from espha.protocol.http import (
    TIMEOUT_S,
    NoAnswerError,
    addresses,
    ask_status,
    ask_switchover,
)
from espha.protocol.states import EngineState, Step, SwitchoverReason
from espha.protocol.status import ChildStatus, EngineProgress, ReplicaStatus
from espha.protocol.switchover import SwitchoverAnswer

_LOOK_S = 0.05
_HEIR_SHARE = 0.6
"""Of the failure timeout: for so long the old one waits for its heir's first commit."""
_HEIR_ROUNDS = 10
"""So many times as long, where the heir says that it is at it: to fence it would cost more."""
_TAKES_OVER = frozenset({Step.FENCING, Step.READING_BACK, Step.RUNNING, Step.COMMITTING})
"""Steps of a standby that is taking over: one that only follows replays, reads and waits."""
_PEER_S = 0.2
_PATIENT_PEER_S = 1.0
"""Before the end, when the one who does not answer may be next: two would lead otherwise."""
_ATTEMPTS = 10
_AGAIN_S = 0.1
_LEAVING_LOOK_S = 0.02
_DIGITS = 10
"""Those at the end of a znode's name, which say where it stands in the queue."""
_LOG = structlog.get_logger()


class HandOver:
    """The supervisor's part, for one life of its child."""

    def __init__(
        self, name: str, member: Membership, child: Child, failure_timeout_ms: int, peers: str = ""
    ) -> None:
        """Hand over for the supervisor of `name`.

        Args:
            name: the replica.
            member: its stay in the election.
            child: its child.
            failure_timeout_ms: silence after which a replica counts as failed, ms; three fifths of
                it the heir has for its first commit.
            peers: supervisors of all replicas, "host:port,…"; asked when a heir is late.
        """
        self._name, self._member, self._child, self._peers = name, member, child, peers
        self._wait_s = failure_timeout_ms / 1000 * _HEIR_SHARE
        self._lock = threading.Lock()
        self._begun = False
        self._let_go = False
        self._leaves = False
        """This replica ends: it will not go on, whether its heir comes or not."""
        self._left = False
        """It has let go for good: its heir has not come, and the end of its session elects one."""
        self._epoch, self._heir = 0, ""
        self._taken_over = threading.Event()

    def ask(self, status: ReplicaStatus, to: str | None) -> SwitchoverAnswer:
        """Begin to hand over to `to` (None: to the next in line), or say why not."""
        if status.engine is None:
            return _answer(SwitchoverReason.NOT_AN_ENGINE, "only engines hand over")
        active = status.engine.active or None
        if status.state is not EngineState.ACTIVE:
            return _answer(SwitchoverReason.NOT_ACTIVE, f"{self._name} is not active", active)
        if to == self._name:
            return _answer(SwitchoverReason.ALREADY_ACTIVE, f"{to} is active already", active)
        with self._lock:
            return self._begin(to, active, status.epoch)

    def leave(
        self, status: Callable[[], ReplicaStatus], ended: threading.Event, limit_s: float
    ) -> None:
        """Let go because this replica is to end; return when its child may be killed.

        1. A standby has nothing to let go of.
        2. An active engine hands over to the next in line, by ZooKeeper's word, or by that of the
           others where a drain takes a ZooKeeper server with it. Where there is none, it commits
           what is under way and stops there.
        3. One that is just taking over does so first: its end would leave a transaction open.
        4. An active adapter commits what is under way and ends.

        Args:
            status: returns what `/status` shows.
            ended: set when the child has ended.
            limit_s: for so long it may take, s: a commit waits while a broker is away.
        """
        self._leaves = True
        deadline, asked = time.monotonic() + limit_s, False
        while time.monotonic() < deadline:
            told = status()
            if told.state is EngineState.ACTIVE and not asked:
                asked = self._let_go_for_good(told)
            let_go = told.state is not EngineState.ACTIVE and not self._begun
            if let_go and (asked or self._left or not self._member.leads):
                return
            if ended.wait(_LEAVING_LOOK_S):
                return
        _LOG.warning("the child is killed: it does not let go in time", limit_s=limit_s)

    def _let_go_for_good(self, told: ReplicaStatus) -> bool:
        """Begin to hand over; False: somebody else has begun that already."""
        answer = self.ask(told, None)
        _LOG.info("leaves", reason=answer.reason, message=answer.message)
        if answer.reason is SwitchoverReason.UNDER_WAY:
            return False
        if answer.reason is not SwitchoverReason.BEGUN:
            self._child.make_standby()
        return True

    def heard(self, status: ChildStatus) -> None:
        """Leave the place once the child has let go and the heir leads."""
        if not self._begun:
            return
        progress = status.progress
        if isinstance(progress, EngineProgress) and progress.epoch > self._epoch:
            self._taken_over.set()
        if status.state is EngineState.STANDBY and not self._let_go:
            self._let_go = True
            waits = threading.Thread(target=self._wait_for_heir, name="hand-over", daemon=True)
            try:
                waits.start()
            except RuntimeError as error:  # no thread is left; the next status tries again
                _LOG.error("nobody can wait for the heir", error=repr(error))
                self._let_go = False

    def _wait_for_heir(self) -> None:
        try:
            leads = self._heir_leads()
        except (RuntimeError, OSError) as error:  # no thread, or nothing, is left
            _LOG.error("nobody can be asked about the heir", error=repr(error))
            leads = False
        goes_on = not leads and not self._leaves
        if leads:
            self._member.requeue()
        elif goes_on:
            _LOG.warning("the heir has not taken over; the old one goes on")
            self._child.make_active()
        else:
            _LOG.warning("the heir has not taken over yet; the old one ends all the same")
            self._left = True
        self._begun = False
        if goes_on:  # last of all: ZooKeeper may be away, and whoever asks it waits
            with contextlib.suppress(KazooException, KazooTimeoutError):
                self._member.call_for(None)

    def _heir_leads(self) -> bool:
        """Wait for the heir's first commit, of which the others may know before this one reads it.

        False: the heir is not at it, or it takes too long.
        """
        for _ in range(_HEIR_ROUNDS):
            if self._taken_over.wait(self._wait_s):
                return True
            others = self._ask_others()
            if any(told.epoch > self._epoch for told in others):
                return True
            if not any(told.name == self._heir and takes_over(told) for told in others):
                return False
        return False

    def _ask_others(self, limit_s: float = _PEER_S) -> list[ReplicaStatus]:
        """Return what the others say of themselves; those that do not answer in time lack."""
        listed = addresses(self._peers)
        if not listed:
            return []
        with ThreadPoolExecutor(len(listed)) as pool:
            answers = pool.map(lambda address: _status(address, limit_s), listed)
            return [told for told in answers if told and told.name != self._name]

    def _begin(self, to: str | None, active: str | None, epoch: int) -> SwitchoverAnswer:
        if self._begun:
            said = f"{self._name} is handing over already"
            return _answer(SwitchoverReason.UNDER_WAY, said, active)
        called = "" if to or not self._leaves else self._call_before_the_end(active)
        called = called or self._call_patiently(to, active)
        if isinstance(called, SwitchoverAnswer):
            return called
        self._let_go, self._epoch, self._heir = False, epoch, called
        self._taken_over.clear()
        self._begun = True
        self._child.make_standby(heir=called)
        said = f"{self._name} hands over to {to or 'the next in line'}"
        return _answer(SwitchoverReason.BEGUN, said, active)

    def _call_before_the_end(self, active: str | None) -> SwitchoverAnswer | str:
        """Like `_call`; where ZooKeeper does not answer the others say who is next, or nobody ("").

        Nothing need be noted in ZooKeeper then: the first one in line leads next in any case.
        """
        try:
            return self._call(None, active)
        except (KazooException, KazooTimeoutError):
            waiting = [
                (told.znode[-_DIGITS:], told.name)
                for told in self._ask_others(_PATIENT_PEER_S)
                if told.state is EngineState.STANDBY and told.in_sync and told.znode
            ]
            return min(waiting)[1] if waiting else ""

    def _call_patiently(self, to: str | None, active: str | None) -> SwitchoverAnswer | str:
        """Like `_call`, which a connection that is just being made anew does not keep from it."""
        pause, error = threading.Event(), ""
        for _ in range(_ATTEMPTS):
            try:
                return self._call(to, active)
            except (KazooException, KazooTimeoutError) as failure:
                error = repr(failure)
                pause.wait(_AGAIN_S)
        said = f"ZooKeeper does not answer: {error}"
        return _answer(SwitchoverReason.ZOOKEEPER, said, active)

    def _call(self, to: str | None, active: str | None) -> SwitchoverAnswer | str:
        """Have ZooKeeper note who is to be next; return the heir, or why that is not possible."""
        others = [name for name in self._member.queue() if name != self._name]
        if not others:
            said = "no other engine stands for election"
            return _answer(SwitchoverReason.NO_CANDIDATE, said, active)
        if to and to not in others:
            said = f"{to} does not stand for election; there are: {', '.join(others)}"
            return _answer(SwitchoverReason.NOT_A_CANDIDATE, said, active)
        self._member.call_for(to)
        return to or others[0]


def takes_over(told: ReplicaStatus) -> bool:
    """Tell whether a replica is at its take-over, and has not committed yet."""
    return told.state is EngineState.STANDBY and told.step in _TAKES_OVER


def _answer(reason: SwitchoverReason, message: str, active: str | None = None) -> SwitchoverAnswer:
    return SwitchoverAnswer(reason=reason, message=message, active=active)


def switch_over(
    addresses: Sequence[str], to: str | None, token: str, wait_s: float, say: Callable[[str], None]
) -> int:
    """Ask the active one of these supervisors to hand over; wait until another engine is active.

    Args:
        addresses: supervisors, `host:port`; the active one need not be the first.
        to: the engine that is to be active; None: the next in line.
        token: shown to supervisors that are not on this machine; empty: none.
        wait_s: how long to wait.
        say: called with each sentence for the user.

    Returns:
        The exit code: 0 when another engine (or the one asked for) is active, else 1.
    """
    found = {address: status for address in addresses if (status := _status(address))}
    active = {
        address: status for address, status in found.items() if status.state is EngineState.ACTIVE
    }
    if not active:
        states = ", ".join(f"{status.name} is {status.state}" for status in found.values())
        say(f"no active engine found: {states or 'nobody answers at ' + ', '.join(addresses)}")
        return 1
    address = max(active, key=lambda one: active[one].epoch)
    answer = _ask(address, to, token)
    say(answer.message)
    if answer.code != 202:
        return 0 if answer.code == 200 else 1
    after = _wait(addresses, active[address].epoch, wait_s)
    if after is None:
        say(f"no other engine is active after {wait_s:g} s")
        return 1
    say(f"{after.active} is active, epoch {after.epoch}")
    return 0 if to in (None, after.active) else 1


def _wait(addresses: Sequence[str], epoch: int, wait_s: float) -> EngineProgress | None:
    """Return the first word of a take-over after `epoch`: all engines know who has made it."""
    deadline, pause = time.monotonic() + wait_s, threading.Event()
    while time.monotonic() < deadline:
        for address in addresses:
            status = _status(address)
            engine = status.engine if status else None
            if engine and engine.epoch > epoch and engine.active:
                return engine
        pause.wait(_LOOK_S)
    return None


def _status(address: str, limit_s: float = TIMEOUT_S) -> ReplicaStatus | None:
    """Return what a supervisor says of its engine; nothing when it does not answer in time."""
    try:
        return ask_status(address, limit_s)
    except NoAnswerError:
        return None


def _ask(address: str, to: str | None, token: str) -> SwitchoverAnswer:
    try:
        return ask_switchover(address, to, token)
    except NoAnswerError as error:
        return _answer(SwitchoverReason.UNREACHABLE, str(error))
