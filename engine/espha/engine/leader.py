"""The active engine's work: take input, run a batch, commit it."""

from collections.abc import Callable

from espha.engine.clock import LogClock
from espha.engine.digests import inputs_digest
from espha.engine.follower import Job
from espha.engine.inputs import Inputs
from espha.engine.position import Position
from espha.engine.publisher import Publisher
from espha.kernel import SEMANTICS
from espha.pipeline.job import Input
from espha.protocol.order import FORMAT, OrderRecord, Range

_BATCH_LIMIT = 5_000
_WAIT_S = 0.5
"""How long to wait for input before looking at anything else."""


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
    ) -> None:
        """Go on at `at`, which moves on with each commit; `model` is the model's digest."""
        self._job, self._inputs, self._at = job, inputs, at
        self.publisher = publisher
        self._name, self._model, self._runtime = name, model, runtime
        self._acknowledge, self._clock = acknowledge, clock

    def take_over(self) -> None:
        """Commit the take-over itself: a batch of the input at hand, or an empty one."""
        self._at.epoch += 1
        self._commit(*self._inputs.take(_BATCH_LIMIT, 0))

    def step(self) -> bool:
        """Commit the next batch; say whether there was anything to do."""
        ranges, inputs = self._inputs.take(_BATCH_LIMIT, self._wait_s())
        if inputs or self._wait_s() == 0:
            self._commit(ranges, inputs)
            return True
        return False

    def step_down(self) -> None:
        """Get ready to take over once more."""
        self.publisher = self.publisher.renewed()

    def _wait_s(self) -> float:
        """Return how long (s) to wait for input before windows have something to do anyway."""
        if self._at.due is None:
            return _WAIT_S
        return min(max((self._at.due - self._now()) / 1000, 0), _WAIT_S)

    def _now(self) -> int:
        """Return what the clock of an order record is now (ms)."""
        return self._clock.next(self._at.clock, self._at.age_ms)

    def _commit(self, ranges: list[Range], inputs: list[Input]) -> None:
        """Run a batch and commit it: its outputs and its order record, or nothing."""
        at = self._at
        clock = self._now()
        batch = at.batch(at.sequence + 1, clock, inputs)
        result = self._job.run([batch])[0]
        record = OrderRecord(
            format=FORMAT,
            sequence=batch.sequence,
            inputs=tuple(ranges),
            clock=clock,
            outputs=len(result.outputs),
            digest=result.digest(),
            model=self._model,
            engine=self._name,
            epoch=at.epoch,
            runtime=self._runtime,
            records=len(inputs),
            inputs_digest=inputs_digest(inputs),
            semantics=SEMANTICS,
        )
        self.publisher.commit(result, record.encode())
        self._acknowledge(record)
        at.passed(record)
        at.count(batch, result)
