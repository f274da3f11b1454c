"""A planned switchover: the active engine hands over, with nothing open and no restart.

1. The supervisor is asked (`POST /switchover`). It looks whether somebody else stands for election,
   notes in ZooKeeper whom it is to be, if that matters, and tells its child to be a standby.
2. The child finishes its batch and reports `standby`; its state stays.
3. Now the supervisor goes to the end of the queue. The next one is elected and finds nothing to
   abort.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from espha.ha.child import Child, Status
from espha.ha.election import Membership
from espha.recovery.remote import ask, ask_status

PATH = "/switchover"
_LOOK_S = 0.05


class Answer(NamedTuple):
    """What a supervisor says to somebody who asks it to hand over.

    Attributes:
        code: HTTP's. 200: it is as wished; 202: begun; 409: impossible; 503: not now.
        message: the same as a sentence.
        active: the active engine's name, where it is known.
    """

    code: int
    message: str
    active: str | None = None


class HandOver:
    """The supervisor's part, for one life of its child."""

    def __init__(self, name: str, member: Membership, child: Child) -> None:
        self._name, self._member, self._child = name, member, child
        self._lock = threading.Lock()
        self._begun = False

    def ask(self, status: Status, to: str | None) -> Answer:
        """Begin to hand over to `to` (None: to the next in line), or say why not."""
        active = status.get("active") or None
        if "epoch" not in status:
            return Answer(409, "only engines hand over")
        if status["state"] != "active":
            return Answer(409, f"{self._name} is not active", active)
        if to == self._name:
            return Answer(200, f"{to} is active already", active)
        with self._lock:
            if self._begun:
                return Answer(202, f"{self._name} is handing over already", active)
            try:
                refusal = self._call(to)
            except (KazooException, KazooTimeoutError) as error:
                return Answer(503, f"ZooKeeper does not answer: {error!r}", active)
            if refusal:
                return Answer(409, refusal, active)
            self._begun = True
            self._child.make_standby()
        return Answer(202, f"{self._name} hands over to {to or 'the next in line'}", active)

    def heard(self, status: Status) -> None:
        """Go to the end of the queue once the child has let go."""
        if self._begun and status.get("state") == "standby":
            self._begun = False
            self._member.requeue()

    def _call(self, to: str | None) -> str:
        others = [name for name in self._member.queue() if name != self._name]
        if not others:
            return "no other engine stands for election"
        if to and to not in others:
            return f"{to} does not stand for election; there are: {', '.join(others)}"
        self._member.call_for(to)
        return ""


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
        The exit code: 0 when another engine (or the one wished for) is active, else 1.
    """
    found = [(address, status) for address in addresses if (status := _status(address))]
    active = [(address, status) for address, status in found if status.get("state") == "active"]
    if not active:
        states = ", ".join(f"{status.get('name')} is {status.get('state')}" for _, status in found)
        say(f"no active engine found: {states or 'nobody answers at ' + ', '.join(addresses)}")
        return 1
    address, before = max(active, key=lambda one: int(one[1].get("epoch", 0)))
    answer = _ask(address, to, token)
    say(answer.message)
    if answer.code != 202:
        return 0 if answer.code == 200 else 1
    after = _wait(addresses, before, wait_s)
    if after is None:
        say(f"no other engine is active after {wait_s:g} s")
        return 1
    say(f"{after['active']} is active, epoch {after['epoch']}")
    return 0 if to in (None, after["active"]) else 1


def _wait(addresses: Sequence[str], before: Status, wait_s: float) -> Status | None:
    """Return the first status that tells of a take-over: all engines know who has made it."""
    deadline, pause = time.monotonic() + wait_s, threading.Event()
    while time.monotonic() < deadline:
        for address in addresses:
            status = _status(address)
            if status.get("epoch", 0) > before["epoch"] and status.get("active"):
                return status
        pause.wait(_LOOK_S)
    return None


def _status(address: str) -> Status:
    """Return what a supervisor says of its engine; nothing when it does not answer."""
    try:
        return ask_status(address)
    except (OSError, http.client.HTTPException, ValueError):
        return {}


def _ask(address: str, to: str | None, token: str) -> Answer:
    try:
        code, told = ask(address, "POST", PATH, json.dumps({"to": to}), token=token)
        return Answer(code, str(told["message"]), told.get("active"))
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        return Answer(503, f"{address} does not answer: {error!r}")
