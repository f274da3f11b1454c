"""The active engine's work: take input, run a batch, commit it."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from espha.engine.agreement import Agreement
from espha.engine.background import Background
from espha.engine.batch_size import BatchSize
from espha.engine.clock import LogClock
from espha.engine.digests import inputs_digest
from espha.engine.follower import Job
from espha.engine.inputs import Inputs
from espha.engine.position import Position
from espha.engine.publisher import Publisher
from espha.engine.quarantine import Quarantine
from espha.kernel import SEMANTICS
from espha.pipeline.job import Input
from espha.protocol.activity import Doing
from espha.protocol.order import PLAIN_FORMAT, SWITCH_FORMAT, OrderRecord, Range, Shadow
from espha.protocol.states import Step

_WAIT_S = 0.5
"""How long to wait for input before looking at anything else."""
_DENSE = 500
"""So many inputs in a commit double the interval to the next one: the more come, the larger the
batches, and what a commit costs is shared by more of them."""
_LONGEST_S = 0.2
"""The interval is not stretched beyond this."""
_BESIDE_S = 0.3
"""The successor has the processor first; this engine gets ready once more behind its take-over."""
_PROOF_S = 5.0
"""After so long without a commit there is one without input.

One that was deposed learns it by that; the order log never runs empty; connections stay warm.
"""


class _Begin(NamedTuple):
    model: str
    since: int | None


class _End(NamedTuple):
    pass


class Leader:
    """Decides what is processed next, and commits it: outputs and order record, or nothing."""

    def __init__(
        self,
        job: Job,
        inputs: Inputs,
        publisher: Publisher,
        at: Position,
        *,
        name: str,
        model: str,
        runtime: str,
        acknowledge: Callable[[OrderRecord], None],
        clock: LogClock,
        agreement: Agreement,
        quarantine: Quarantine,
        doing: Doing,
        size: BatchSize,
        interval_s: float = 0.0,
    ) -> None:
        """Go on at `at`, which moves on with each commit; `model` is the model's digest.

        `size`: what is known of how long records take.
        `interval_s`: how long to wait from the begin of one commit to that of the next one, at
        least; longer behind a large batch. What comes meanwhile shares the next commit, and what
        that costs.
        """
        self._quarantine = quarantine
        self._calm = False
        """In a stretch where engines have died: time has passed, and stands still now."""
        self._doing = doing
        self._job, self._inputs, self._at = job, inputs, at
        self.publisher = publisher
        publisher.moved = self._fence_moves
        self._size = size
        self._renewal: Background | None = None
        self._hurries = threading.Event()
        self._name, self._model, self._runtime = name, model, runtime
        self._acknowledge, self._clock, self._agreement = acknowledge, clock, agreement
        self._interval_s = interval_s
        self._began = self._committed = 0.0
        self._taken = 0
        """Inputs of the last commit."""
        self._next_shadow: _Begin | _End | None = None
        self.called = threading.Event()
        """Set by whoever wants the next step not to wait for the interval's end."""

    def take_over(self) -> None:
        """Commit the take-over itself: a batch of the input at hand, or an empty one."""
        self._at.epoch += 1
        self._calm = False
        self._size.begin()
        if not self._carefully(0):
            again = self._quarantine.again(self._at.sequence) or self._size.limit
            self._commit(*self._inputs.take(min(again, self._size.limit), 0))

    def step(self, prove: bool = False) -> bool:
        """Commit the next batch; say whether there was anything to do.

        Args:
            prove: commit in any case, to find out whether this engine still leads.
        """
        self._doing.begin(Step.WAITING)
        if not prove and self._is_called_in_its_rest():
            return False
        prove = prove or time.monotonic() - self._committed > _PROOF_S
        wait_s = 0.0 if prove else self._wait_s()
        if self._carefully(wait_s):
            return True
        ranges, inputs = self._inputs.take(self._size.limit, wait_s)
        if inputs or prove or self._wait_s() == 0:
            self._commit(ranges, inputs)
            return True
        return False

    def begin_shadow(self, model: str, since: int | None) -> None:
        """Say in the next order record that a model runs beside this one.

        Args:
            model: its digest.
            since: order record behind which it began with empty state; None: that next one.
        """
        at = self._at
        if at.shadow is None or (at.shadow.model, at.shadow.since) != (model, since):
            self._next_shadow = _Begin(model, since)

    def end_shadow(self) -> None:
        """Say in the next order record that no model runs beside this one any more."""
        self._next_shadow = _End()

    def hand_over(self, heir: str, switch: str = "") -> None:
        """Commit a last batch, whose order record names the engine that goes on.

        Args:
            heir: its name; empty: whoever is elected.
            switch: digest of the model of all records behind it; empty: it stays the same. Where no
                shadow of it runs, it begins there with empty state.
        """
        if switch and (self._at.shadow is None or self._at.shadow.model != switch):
            self._next_shadow = _Begin(switch, None)
        careful = self._quarantine.care(self._at.sequence, self._inputs) is not None
        ranges, inputs = ([], []) if careful else self._inputs.take(self._size.limit, 0)
        self._commit(ranges, inputs, heir=heir, switch=switch)

    def step_down(self) -> None:
        """Get ready to take over once more, beside the main loop: it may be named heir at once."""
        self._hurries.clear()
        self._renewal = Background(self._renew, "renew")

    def look(self) -> None:
        """Raise what getting ready has raised: such an engine is no standby."""
        if self._renewal and self._renewal.ended:
            self._renewal.wait()

    def fence(self) -> None:
        """Shut out whoever led before, as soon as this engine is ready for it."""
        if self._renewal:
            self._hurries.set()
            self._renewal.wait()
        self.publisher.fence()

    def _fence_moves(self) -> None:
        """Say that the fence gets on, where the main loop waits for it.

        The thread of the fence calls this. While the main loop does something else, it tells of
        that by itself; once it waits for the fence, it does nothing else before this thread ends.
        """
        told = self._doing.told()
        if told and told.step is Step.FENCING:
            self._doing.moved()

    def _renew(self) -> None:
        self._hurries.wait(_BESIDE_S)
        self.publisher = self.publisher.renewed()

    def _is_called_in_its_rest(self) -> bool:
        """Let the interval pass; say whether somebody wants something meanwhile."""
        rest = interval_behind(self._taken, self._interval_s)
        called = self.called.wait(max(0.0, self._began + rest - time.monotonic()))
        self.called.clear()
        return called

    def _wait_s(self) -> float:
        """Return how long (s) to wait for input before windows have something to do anyway."""
        if self._at.due is None:
            return _WAIT_S
        return min(max((self._at.due - self._now()) / 1000, 0), _WAIT_S)

    def _now(self) -> int:
        """Return what the clock of an order record is now (ms)."""
        return self._clock.next(self._at.clock, self._at.age_ms)

    def _carefully(self, wait_s: float) -> bool:
        """Commit a small batch, where engines have died; say whether that was so."""
        care = self._quarantine.care(self._at.sequence, self._inputs)
        if care is None:
            self._calm = False
            return False
        ranges, inputs = self._inputs.take(care.limit, wait_s) if self._calm else ([], [])
        if inputs:
            self._commit(ranges, inputs, careful=True)
        else:
            # What time alone brings about must not be laid on a record.
            self._commit([], [])
            self._calm = True
        return True

    def _commit(
        self,
        ranges: list[Range],
        inputs: list[Input],
        *,
        careful: bool = False,
        heir: str = "",
        switch: str = "",
    ) -> None:
        """Run a batch and commit it: its outputs and its order record, or nothing."""
        self._began, self._taken = time.monotonic(), len(inputs)
        at = self._at
        clock = at.clock if careful else self._now()
        skipped = self._quarantine.skips(inputs)
        order = self._agreement.order() if self._agreement.due() else None
        batch = at.batch(at.sequence + 1, clock, inputs, skipped)._replace(checkpoint=order)
        # It may have to shut out its own past first: that is Kafka's time, and no record's fault.
        self._doing.begin(Step.FENCING, batch.sequence, len(inputs), ranges)
        transaction = self.publisher.begin()
        running = self._quarantine.running(
            at.sequence, ranges, len(inputs), careful=careful, limit_s=self.publisher.limit_s
        )
        with running as computed:
            self._doing.begin(Step.RUNNING, batch.sequence, len(inputs), ranges)
            begun = time.monotonic()
            result = self._job.run([batch], transaction)[0]
            took_s = time.monotonic() - begun - result.waited_s
            computed(took_s, result.waited_s)
            self._size.learn(len(inputs), took_s + result.waited_s)
            if order:
                self._agreement.begun(result.checkpoint)
            record = OrderRecord(
                format=SWITCH_FORMAT if switch else PLAIN_FORMAT,
                sequence=batch.sequence,
                inputs=tuple(ranges),
                clock=clock,
                outputs=result.total,
                digest=result.digest(),
                model=self._model,
                engine=self._name,
                epoch=at.epoch,
                runtime=self._runtime,
                records=len(inputs),
                inputs_digest=inputs_digest(inputs),
                checkpoint=order is not None,
                state=self._agreement.told(),
                semantics=SEMANTICS,
                heir=heir,
                skipped=skipped,
                since=at.since,
                shadow=self._shadow(batch.sequence),
                switch=switch,
            )
            self._doing.begin(Step.COMMITTING, batch.sequence, len(inputs), ranges)
            self.publisher.commit(result, record.encode())
        self._committed = time.monotonic()
        self._next_shadow = None
        self._acknowledge(record)
        at.passed(record)
        at.count(batch, result)

    def _shadow(self, sequence: int) -> Shadow | None:
        """Return what the order record with this number says of the next model."""
        asked = self._next_shadow
        if isinstance(asked, _End):
            return None
        if asked is None:
            # Where the input went on stands in the first record only.
            return self._at.shadow and self._at.shadow.model_copy(update={"cursors": ()})
        return Shadow(
            model=asked.model,
            since=sequence if asked.since is None else asked.since,
            offset=max(0, self.publisher.committed) if asked.since is None else 0,
            cursors=self._inputs.used() if asked.since is None else (),
        )


def interval_behind(inputs: int, shortest_s: float) -> float:
    """Return the interval (s) from a commit of so many inputs to the next one."""
    return max(shortest_s, min(shortest_s * (1 + inputs / _DENSE), _LONGEST_S))
