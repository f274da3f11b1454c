"""Supervised processes of a test, watched through their HTTP status."""

import http.client
import json
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from espha.local import replicas
from espha.local.ports import HOST
from espha.local.processes import family
from espha.local.waiting import wait_until

LIMIT_S = 150.0
"""For longer than this nothing may stand still, however busy the machine is."""
CALM: Final = {"ESPHA_SESSION_MS": "4000", "ESPHA_FAILURE_TIMEOUT_MS": "4000"}
"""Settings of replicas that nobody takes for dead because the machine stood still for a second."""

_LOOK_S = 0.1


class Replica(replicas.Replica):
    """One `espha supervise -- …` process: an engine or an adapter, as it runs in a pod."""

    def status(self) -> dict[str, Any]:
        """Return what `/status` says; an empty dict when nobody answers."""
        try:
            url = f"http://{HOST}:{self.port}/status"
            with urllib.request.urlopen(url, timeout=2) as answer:
                return dict(json.load(answer))
        except (OSError, http.client.HTTPException):  # one that ends breaks off
            return {}

    def told(self) -> dict[str, Any]:
        """Return what `/status` says; on a busy machine the first answer may be late."""
        said: dict[str, Any] = {}

        def answers() -> bool:
            said.update(self.status())
            return bool(said)

        wait_until(answers, LIMIT_S, f"{self.name} says its status", _LOOK_S)
        return said

    def ask_snapshot(self) -> int:
        """Ask for a snapshot; return the HTTP code of the answer."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=LIMIT_S)
        connection.request("POST", "/snapshot")
        return connection.getresponse().status

    def megabytes(self) -> int:
        """Return the memory of its processes that no other one has."""
        assert self.process is not None
        return sum(map(_private_kb, family(self.process.pid))) // 1024

    def is_in(self, *states: str) -> bool:
        """Tell whether the replica is in one of these states."""
        return self.status().get("state") in states


def restarted(*replicas: Replica) -> Callable[[], None]:
    """Return what waits, when their children are killed now, until these are started again.

    Until then a status may still be that of the child that is dead.
    """
    before = {replica.name: int(replica.told()["restarts"]) for replica in replicas}

    def again() -> bool:
        return all(_restarts(replica) > before[replica.name] for replica in replicas)

    return lambda: wait_until(again, LIMIT_S, f"{', '.join(before)} started again", _LOOK_S)


def _restarts(replica: Replica) -> int:
    return int(replica.status().get("restarts") or 0)


def in_sync(replica: Replica) -> bool:
    """Tell whether the replica says that it is in sync."""
    return bool(replica.status().get("in_sync"))


def active_of(replicas: list[Replica]) -> list[Replica]:
    """Return the replicas that say they are active."""
    return [replica for replica in replicas if replica.is_in("active")]


def in_line(replicas: Iterable[Replica]) -> bool:
    """Tell whether these stand in the queue in this order."""
    znodes = [replica.status().get("znode") or "" for replica in replicas]
    return all(znodes) and znodes == sorted(znodes)


def only_active(replicas: Iterable[Replica], timeout: float = LIMIT_S) -> Replica:
    """Return the one replica that says it is active, waiting until there is exactly one."""
    among, found = list(replicas), list[Replica]()

    def one() -> bool:
        found[:] = active_of(among)
        return len(found) == 1

    wait_until(one, timeout, f"one of {', '.join(each.name for each in among)} is active")
    return found[0]


def _private_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
