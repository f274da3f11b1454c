"""The engine: follows the order log as a standby, writes it when active.

Standby: read order records; run the batches that they name; compare digests (`follower`).
Take-over, when elected: fence, read the log to its end, and commit, with whatever input is there.
Active: take input, run a batch, commit its outputs and its order record in one transaction
(`leader`). When windows have something to do because time has passed, a batch without input does
it.
Step down, when told to: commit a batch whose order record names the heir, keep the state, and
follow the log again. The heir takes over when it reads that record.

Whatever goes wrong ends the process: its state is rebuilt from the log by the next one.
"""

import contextlib
import platform
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

import structlog

from espha.autogroup import take_usual_share
from espha.connectors.topics import TopicPlan
from espha.engine.agreement import Agreement
from espha.engine.background import Background
from espha.engine.batch_size import BatchSize
from espha.engine.checkpoints import Checkpoints
from espha.engine.clock import LogClock
from espha.engine.follower import Diverged, Follower, Job
from espha.engine.forgiveness import Forgiveness
from espha.engine.inputs import Inputs
from espha.engine.leader import Leader
from espha.engine.memory import Memory
from espha.engine.position import Position, taken_over
from espha.engine.publisher import Publisher
from espha.engine.quarantine import BLIND, Quarantine
from espha.engine.shadow import Ask, Shadowing, Spared, Switched
from espha.engine.witness import Witness
from espha.kafka.order_log import OrderLog
from espha.kafka.reader import LogError
from espha.kafka.writer import Fenced
from espha.kernel import SEMANTICS
from espha.model import Project, model_digest
from espha.pipeline.job import Batch
from espha.protocol.child_side import Control
from espha.protocol.model_change import ModelAction
from espha.protocol.order import OrderRecord
from espha.protocol.states import EngineState, Role, Step
from espha.protocol.status import DividedFacts, EngineProgress, TakeOverFacts
from espha.recovery.scheduler import SnapshotScheduler
from espha.recovery.store import SnapshotMeta

_WARM_UP_JOBS = 30
_LOOK_S = 0.01
"""How long a standby waits for an order record before it looks whether it is elected.

The fence, which takes longer, has begun by then: it does not wait for the main loop.
"""
_PROMPT_S = 0.1
"""An heir that looks later than this may come too late, and asks whether it does."""
_HEIR_S = 1.0
"""For so long an engine of the last model keeps its place for the first commit of its heir."""
_HEIR_RECORDS = 2
"""The own last order record, and the heir's first one."""
_KEEPS = (EngineState.STANDBY, EngineState.ACTIVE, EngineState.SHADOW)
_WARM_S = 60.0
"""So often a standby uses what a take-over uses: what is idle grows cold."""

RUNTIME = (
    f"espha {version('espha')}, Python {platform.python_version()}, PySpark {version('pyspark')}"
)
_LOG = structlog.get_logger()


class Engine:
    """One replica of a deployment; see the module's text for what it does."""

    def __init__(
        self,
        *,
        name: str,
        project: Project,
        plan: TopicPlan,
        job: Job,
        log: OrderLog,
        inputs: Inputs,
        publisher: Publisher,
        control: Control,
        scheduler: SnapshotScheduler,
        topic_ids: dict[str, str],
        start: SnapshotMeta | None,
        acknowledge: Callable[[OrderRecord], None] = lambda record: None,
        clock: LogClock | None = None,
        quarantine: Quarantine = BLIND,
        forgiveness: Forgiveness | None = None,
        careful: bool = False,
        agreement: Agreement | None = None,
        commit_interval_s: float = 0.0,
        memory: Memory | None = None,
        tail: OrderRecord | None = None,
        wanted: str = "",
        forced: int | None = None,
        ask_for_shadow: Ask | None = None,
        newest: Callable[[], int] = lambda: 0,
        divided: Callable[[], DividedFacts] = DividedFacts,
    ) -> None:
        """Go on behind `start`, whose state the job holds already; None: from the beginning.

        `forgiveness`: what of the log that there is need not be as it says. `careful`: the engine
        has diverged, and compares its state at each mark of that log.
        `tail` is the last record of the log, as far as it is known. With `ask_for_shadow` it runs
        its model beside that of the log; `wanted` is the digest of the model it was given, where
        it runs another one. Behind the order record `forced` it may lead in place of the log's.
        `newest` returns the newest order record that other replicas know of, `divided` what is
        known of topics with further partitions.
        """
        self._model = model_digest(project)
        self._wanted, self._forced = wanted or self._model, forced
        self._spared = Spared(self._wanted != self._model and not control.follow.is_set())
        self._shadowing = Shadowing(self._model, ask_for_shadow) if ask_for_shadow else None
        control.shadow = self._shadowing is not None
        self._label = f"{project.name}@{self._model[:4]}"
        self._plan = plan
        self._job = job
        self._log = log
        self._inputs = inputs
        self._control = control
        self._doing = control.doing
        self._doing.held = inputs.held_topics.longest
        self._scheduler = scheduler
        self._topic_ids = topic_ids
        self._at = Position.behind(start) if start else Position()
        if tail and self._at.sequence in (0, tail.sequence):
            self._at.model, self._at.shadow = tail.next_model, tail.shadow
        self._agreement = agreement or Agreement(Checkpoints())
        size = BatchSize()
        self._follower = Follower(
            job,
            log,
            inputs,
            self._at,
            model=self._model,
            runtime=RUNTIME,
            moved=lambda: self._report(self._state),
            named=self._look_at_heir,
            agreement=self._agreement,
            newest=newest,
            doing=self._doing,
            size=size,
            forgiveness=forgiveness or Forgiveness(),
            careful=careful,
        )
        self._leader = Leader(
            job,
            inputs,
            publisher,
            self._at,
            name=name,
            model=self._model,
            runtime=RUNTIME,
            acknowledge=acknowledge,
            clock=clock or LogClock(),
            agreement=self._agreement,
            quarantine=quarantine,
            doing=self._doing,
            size=size,
            interval_s=commit_interval_s,
        )
        self._memory = memory or Memory()
        self._divided = divided
        self._witness = Witness(log, inputs, self._doing)
        self._state = EngineState.STARTING
        self._started = False
        """It has been in step with the others, and has the processor like these."""
        self._name = name
        self._deciding = threading.Lock()
        self._fencing: Background | None = None
        self._taken = TakeOverFacts()
        self._may_fence = True
        """A publisher can fence once only, and this one has not yet."""
        self._warm = self._polled = time.monotonic()
        control.wake = self._look_at_role

    def run(self) -> None:
        """Follow, take over when elected, and lead; returns never, raises when it must end.

        Raises:
            Fenced, WriterFailed, LogError, Diverged, StateLostError: why this engine ends.
        """
        self._report(EngineState.REPLAYING)
        self._warm_up()
        self._doing.begin(Step.READING_BACK)
        end = self._log.end()
        self._follower.expect_whole(end)
        self._follower.read_to(end)
        self._follower.begin_to_follow()
        self._at.heir = ""  # that was long ago
        self._show_lag()
        while True:
            while self._control.role is Role.STANDBY and self._fencing is None:
                self._doing.begin(Step.WAITING)
                self._polled = time.monotonic()
                self._follower.poll(_LOOK_S)
                self._leader.look()
                self._show_lag()
                if self._follower.is_settled:
                    self._witness.look()
                self._inherit()
                self._keep_warm()
                self._snapshot()
            self._take_over()
            while self._control.role is Role.ACTIVE:
                if self._leader.step(prove=self._change_model() or self._in_doubt()):
                    self._report(EngineState.ACTIVE)
                self._snapshot()
            self._step_down()

    def _warm_up(self) -> None:
        """Start the worker and warm the code now, rather than in the first take-over."""
        at = self._at
        expect = None if at.fresh else at.sequence
        for _ in range(_WARM_UP_JOBS):
            self._doing.begin(Step.STARTING)
            self._job.run([Batch(expect, at.sequence, at.clock, [])])
        self._log.keep_warm()

    def _look_at_role(self) -> None:
        """Begin to fence as soon as this engine is elected, whatever its main loop is about.

        Not behind the record with which the log goes over to another model: its heir leads then.
        """
        self._leader.called.set()
        elected = self._control.role is Role.ACTIVE and self._state is EngineState.STANDBY
        if elected and self._leads_next:
            self._begin_to_fence()

    def _look_at_heir(self, last: OrderRecord) -> None:
        """Lead when the order log, as far as it is known, ends with this engine's name.

        The fence goes on beside what is left to process.
        """
        prompt = time.monotonic() - self._polled < _PROMPT_S
        ready = self._state in (EngineState.STANDBY, EngineState.SHADOW)
        mine = last.heir == self._name and last.next_model == self._model
        if prompt and mine and ready:
            self._control.lead()
            self._begin_to_fence()

    def _begin_to_fence(self) -> Background | None:
        with self._deciding:
            if self._may_fence:
                self._may_fence = False
                self._fencing = Background(self._fence, "fence")
            return self._fencing

    def _fence(self) -> None:
        if self._control.overslept:  # to fence now would cost its successor a failover
            raise Fenced("this engine was frozen after it was elected; another one leads by now")
        self._leader.fence()

    def _inherit(self) -> None:
        """Lead when the last order record there is, asked for anew, names this engine."""
        heir, self._at.heir = self._at.heir, ""
        if heir == self._name and self._leads_next and self._log.at(self._log.end()):
            self._control.lead()

    @property
    def _leads_next(self) -> bool:
        """Whether the next order record is of this engine's model, as far as is known."""
        return self._at.model in ("", self._model) or self._at.sequence == self._forced

    def _change_model(self) -> bool:
        """Do what was asked for with the next model; say whether an order record is to tell it."""
        request, self._control.model_request = self._control.model_request, None
        if request is None:
            return False
        _LOG.warning("the next model", **request.model_dump())
        if request.action is ModelAction.SHADOW:
            self._leader.begin_shadow(request.model, request.since)
        elif request.action is ModelAction.END:
            self._leader.end_shadow()
        elif request.blind or (self._at.shadow and self._at.shadow.model == request.model):
            self._leader.hand_over(request.heir, switch=request.model)
            self._wait_for_heir(request.heir)
            raise self._switched(active=True)
        return True

    def _wait_for_heir(self, heir: str) -> None:
        """Keep the place until the heir has committed, or does not come.

        Else the next one in the queue would be elected, and might shut the heir out before it has
        read that the log goes over to another model.
        """
        if not heir:
            return
        deadline = time.monotonic() + _HEIR_S
        self._log.reopen(self._leader.publisher.committed - 1)
        with contextlib.suppress(LogError, Diverged):  # the next life looks at what is there
            while time.monotonic() < deadline:
                self._doing.begin(Step.WAITING)
                found = self._log.poll(_LOOK_S, _HEIR_RECORDS)
                if any(one.epoch > self._at.epoch for one in found):
                    return

    def _switched(self, active: bool = False) -> Switched:
        """Keep the state, for a roll-back, and return how this process ends.

        Nobody waits for it: whoever runs the other model leads.
        """
        self._report(EngineState.LEAVING)
        if self._at.begun and not self._at.fresh:
            self._scheduler.pin(
                self._meta(active),
                self._job.checkpoint,
                lambda: self._doing.begin(Step.SNAPSHOT),
            )
        model = self._at.model
        return Switched(f"the order log goes on with model {model[:12]}, not {self._model[:12]}")

    def _keep_warm(self) -> None:
        if time.monotonic() - self._warm > _WARM_S:
            self._log.keep_warm()
            self._leader.publisher.keep_warm()
            self._warm = time.monotonic()

    def _in_doubt(self) -> bool:
        wanted = self._control.proof_wanted.is_set()
        if wanted:
            self._control.proof_wanted.clear()
        return wanted

    def _take_over(self) -> None:
        if not self._leads_next and self._fencing is None:  # nor does it shut anybody out
            raise self._switched()
        started = time.monotonic()
        self._witness.forget()
        self._doing.begin(Step.FENCING)
        fencing = self._begin_to_fence()
        self._log.hurry()
        self._follower.settle()
        if fencing is not None:
            fencing.wait()
        fenced = time.monotonic()
        self._doing.begin(Step.READING_BACK)
        end = self._log.end()
        self._follower.read_to(end)
        self._leader.publisher.go_on(end)
        if not self._leads_next:
            raise self._switched()
        if self._at.model not in ("", self._model):  # nobody else can go on from here
            self._at.begin(self._at.sequence)
        read_back = time.monotonic()
        self._log.close()
        before = replace(self._at)
        self._leader.take_over()
        self._taken = taken_over(before, self._at)
        self._report(EngineState.ACTIVE)
        _LOG.warning(
            "hot failover state switched to active",
            epoch=self._at.epoch,
            sequence=self._at.sequence,
            fence_ms=round(fencing.took_s * 1000) if fencing else 0,
            waited_ms=round((fenced - started) * 1000),
            read_back_ms=round((read_back - fenced) * 1000),
            commit_ms=round((time.monotonic() - read_back) * 1000),
        )
        self._control.proof_wanted.clear()
        self._fencing = None

    def _step_down(self) -> None:
        """Let go, with nothing open and the state in place; follow the log from there."""
        if self._control.heir:
            self._leader.hand_over(self._control.heir)
        self._report(
            EngineState.STANDBY
        )  # the next one waits for this, and for nothing that follows
        _LOG.warning("hot failover state switched to standby", sequence=self._at.sequence)
        # The marker of the last commit may not be there yet: begin before it, not behind it.
        self._log.reopen(self._leader.publisher.committed - 1)
        self._leader.step_down()
        self._may_fence = True

    def _show_lag(self) -> None:
        """Be in sync as long as the end of the order log is near, and of this engine's model."""
        near = EngineState.STANDBY
        in_step = self._follower.lag.in_sync
        if self._leads_next:
            self._control.shadow, self._shadowing = False, None
            self._spared.look(self._control.snapshots, self._at)
        elif self._shadowing is None:
            raise self._switched()
        else:
            near = EngineState.SHADOW
            in_step = self._shadowing.look(self._at) and in_step
        state = near if in_step else EngineState.REPLAYING
        if state is not self._state:
            self._report(state)

    def _snapshot(self) -> None:
        """Keep the state now and then; one that fails costs a line in the log."""
        active = self._state is EngineState.ACTIVE
        if self._scheduler.due():
            if not active:
                self._follower.settle()
            if not self._at.fresh and self._state in _KEEPS:
                self._doing.begin(Step.SNAPSHOT)
                self._scheduler.keep(self._meta(active), self._job.checkpoint)
        if self._scheduler.news():
            self._report(self._state)

    def _meta(self, active: bool) -> SnapshotMeta:
        at = self._at
        return SnapshotMeta(
            sequence=at.sequence,
            epoch=at.epoch,
            clock=at.clock,
            model=self._model,
            order_log=self._leader.publisher.committed if active else self._log.reached,
            inputs=self._inputs.cursors(),
            topics=self._topic_ids,
            counts=at.counts,
            since=at.since,
        )

    def _report(self, state: EngineState) -> None:
        at = self._at
        if not self._started and state in _KEEPS:
            self._started = take_usual_share()
        if state is not self._state:
            _LOG.info("state", state=state, sequence=at.sequence, epoch=at.epoch)
        self._state = state
        progress = EngineProgress(
            sequence=at.sequence,
            epoch=at.epoch,
            active=at.active,
            model=self._label,
            model_digest=self._model,
            since=at.since,
            wanted=self._wanted,
            log_model=at.model or self._model,
            shadow=at.shadow.model if at.shadow else "",
            shadow_refusal=self._shadowing.refusal if self._shadowing else "",
            replayed=self._follower.replayed,
            lag_records=self._follower.lag.records,
            lag_ms=self._follower.lag.ms,
            semantics=SEMANTICS,
            checkpoint=self._agreement.last.sequence,
            checkpoint_digest=self._agreement.last.digest,
            **vars(at.counts),  # dict() of a model costs several times as much
            **vars(self._scheduler.facts()),
            **vars(self._memory.facts()),
            **vars(self._divided()),
            **vars(self._taken),
        )
        in_sync = state in (EngineState.STANDBY, EngineState.ACTIVE)
        self._control.report(state, in_sync, progress)
