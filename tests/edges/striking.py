"""Kills at random moments."""

import contextlib
import random
import threading
from collections.abc import Callable, Sequence

from support.replicas import Replica, active_of

SPREAD_S = 3.0
"""Somebody is killed so long after it became active, at most."""
_HEALTHY_S = 2.5
_HEALTHY = 3
"""Each third life lasts so long after it has caught up that a supervisor takes it for healthy:
behind many short ones it would rest for half a minute, and the next one have more to catch up."""
_LOOK_S = 0.05


class Striker(threading.Thread):
    """Kills the process of whichever of these adapters is active, so often."""

    def __init__(self, name: str, replicas: Sequence[Replica], kills: int, seed: int) -> None:
        """Strike later, when started.

        Args:
            name: of the adapter.
            replicas: one, or a pair.
            kills: how many.
            seed: of the moments.
        """
        super().__init__(name=f"strikes at {name}", daemon=True)
        self.adapter, self._replicas, self.kills = name, replicas, kills
        self._chance = random.Random(seed)
        self._ended = threading.Event()
        self.done = 0

    def run(self) -> None:
        """Kill until there were enough kills, or it is ended."""
        while self.done < self.kills and not self._ended.wait(_LOOK_S):
            active = active_of(list(self._replicas))
            if not active or self._ended.wait(self._chance.uniform(0, SPREAD_S)):
                continue
            if self.done % _HEALTHY == 0 and not self._lets_live(active[0]):
                continue
            with contextlib.suppress(LookupError, ProcessLookupError):
                active[0].kill_child()
                self.done += 1
                self._wait_for_end_of(active[0])

    def _lets_live(self, adapter: Replica) -> bool:
        """Let it catch up, and be healthy; False: it has ended by itself."""
        while not adapter.status().get("in_sync"):
            if not adapter.is_in("active") or self._ended.wait(_LOOK_S):
                return False
        return not self._ended.wait(_HEALTHY_S)

    def _wait_for_end_of(self, killed: Replica) -> None:
        """Until then its status may still be that of the dead one."""
        while killed.is_in("active") and not self._ended.wait(_LOOK_S):
            pass

    def end(self) -> None:
        """Strike no more."""
        self._ended.set()


class Restarts(threading.Thread):
    """Kills and starts servers in turn, so often, as long as it is not ended."""

    def __init__(self, restarts: Sequence[Callable[[], None]], each_s: float) -> None:
        super().__init__(name="restarts of servers", daemon=True)
        self._restarts, self._each_s = restarts, each_s
        self._ended = threading.Event()
        self.done = 0

    def run(self) -> None:
        """Restart until it is ended."""
        while not self._ended.wait(self._each_s):
            self._restarts[self.done % len(self._restarts)]()
            self.done += 1

    def end(self) -> None:
        """Restart no more; what is under way comes to its end."""
        self._ended.set()
        if self.is_alive():
            self.join()
