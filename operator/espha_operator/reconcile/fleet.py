"""All deployments: each is reconciled in a thread of its own, so that none waits for another."""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import urllib3
from kubernetes.client.exceptions import ApiException
from prometheus_client import Histogram

from espha_operator.reconcile.cluster import is_refusal, reason
from espha_operator.reconcile.lease import NotHeldError
from espha_operator.reconcile.pauses import Pauses

# Seconds between two steps of a deployment.
INTERVAL = 1.0
# Seconds between two tries at most, when steps fail; a deployment that fails still steps.
LONGEST = 45.0
# Seconds over which the first steps are spread when the operator starts.
SPREAD = 5.0
# Seconds without a finished step after which a deployment counts as stuck.
STUCK = 90.0
Which = tuple[str, str, str]
"""Namespace, name and uid of a deployment."""
STEPS = Histogram(
    "espha_operator_step_seconds",
    "How long steps of deployments took, by how they ended: well or failed.",
    ["result"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90),
    registry=None,
)
_LOG = logging.getLogger(__name__)


class KeptFacts(NamedTuple):
    """How a deployment's steps go.

    Attributes:
        namespace: where it is.
        name: what it is called.
        age: seconds since a step has ended, in whatever way.
        trouble: why the last step failed; empty: it did not.
    """

    namespace: str
    name: str
    age: float
    trouble: str


class Steps(Protocol):
    """What is to be done for a deployment again and again."""

    def step(self) -> None:
        """Do it once."""

    def failed(self, why: str) -> None:
        """Say that it has failed, for a reason that will not pass by itself."""


class Keeper:
    """One deployment's thread."""

    def __init__(self, which: Which, steps: Steps, may_step: Callable[[str], bool]) -> None:
        """Prepare; nothing is done before `start`."""
        self._which, self._steps, self._may_step = which, steps, may_step
        self._ended = threading.Event()
        self._last = time.monotonic()
        self.trouble = ""
        """Why the last step failed; empty: it did not."""

    def start(self, delay: float) -> None:
        """Begin after some seconds."""
        name = "/".join(self._which[:2])
        threading.Thread(target=self._run, args=(delay,), name=name, daemon=True).start()

    def stop(self) -> None:
        """End after the step under way; does not wait for it."""
        self._ended.set()

    @property
    def age(self) -> float:
        """Seconds since a step has ended, in whatever way."""
        return time.monotonic() - self._last

    def _run(self, delay: float) -> None:
        self._ended.wait(delay)
        pauses = Pauses(INTERVAL, LONGEST)
        while not self._ended.is_set():
            went_well = not self._may_step(self._which[0]) or self.turn()
            self._last = time.monotonic()
            self._ended.wait(pauses.after(went_well))

    def turn(self) -> bool:
        """Do a step; say whether it went well. What goes wrong is said, and never ends the task."""
        began = time.monotonic()
        self.trouble = self._step()
        STEPS.labels("failed" if self.trouble else "well").observe(time.monotonic() - began)
        if self.trouble:
            _LOG.warning("%s/%s: %s", *self._which[:2], self.trouble)
        return not self.trouble

    def _step(self) -> str:
        # The API server may be away or busy for a while; the next step is the next try.
        try:
            self._steps.step()
        except ApiException as error:
            if is_refusal(error):
                self._tell(reason(error))
            return reason(error)
        except (OSError, urllib3.exceptions.HTTPError) as error:
            return f"the API server does not answer: {error}"
        except NotHeldError as error:
            return str(error)
        except Exception as error:  # a deployment's own trouble, and never another one's
            _LOG.exception("%s/%s: a step has failed", *self._which[:2])
            why = f"{type(error).__name__}: {error}"
            self._tell(why)
            return why
        return ""

    def _tell(self, why: str) -> None:
        try:
            self._steps.failed(why)
        except Exception as second:
            _LOG.warning("%s/%s: the status cannot say so: %s", *self._which[:2], second)


class Fleet:
    """The keepers of all deployments."""

    def __init__(
        self, reconciler: Callable[[str, str, str], Steps], may_step: Callable[[str], bool]
    ) -> None:
        """Start without deployments.

        Args:
            reconciler: makes what steps for a deployment, of its namespace, name and uid.
            may_step: whether this operator is to work in a namespace now.
        """
        self._reconciler, self._may_step = reconciler, may_step
        self._lock = threading.Lock()
        self._keepers: dict[Which, Keeper] = {}

    def add(self, which: Which, *, later: bool) -> None:
        """Keep a deployment; nothing happens when it is kept already.

        Args:
            which: the deployment.
            later: it is one of many that come at the same time.
        """
        with self._lock:
            if which in self._keepers:
                return
            steps = self._reconciler(*which)
            keeper = self._keepers[which] = Keeper(which, steps, self._may_step)
        keeper.start(random.uniform(0, SPREAD) if later else 0.0)  # noqa: S311

    def remove(self, which: Which) -> None:
        """Keep a deployment no more."""
        with self._lock:
            keeper = self._keepers.pop(which, None)
        if keeper:
            keeper.stop()

    def stop(self) -> None:
        """Keep none of them any more."""
        for which in self._all():
            self.remove(which)

    @property
    def namespaces(self) -> set[str]:
        """Where there are deployments."""
        return {namespace for namespace, _, _ in self._all()}

    def facts(self) -> list[KeptFacts]:
        """Return how the steps of each deployment go."""
        kept = self._all().items()
        return [KeptFacts(*which[:2], one.age, one.trouble) for which, one in kept]

    def ages(self) -> dict[str, float]:
        """Return how many seconds ago each deployment's last step ended, by `namespace/name`."""
        return {f"{one.namespace}/{one.name}": one.age for one in self.facts()}

    def stuck(self) -> dict[str, float]:
        """Return those of them that are stuck, and for how long."""
        return {which: age for which, age in self.ages().items() if age > STUCK}

    def _all(self) -> dict[Which, Keeper]:
        with self._lock:
            return dict(self._keepers)
