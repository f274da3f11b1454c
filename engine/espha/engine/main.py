"""Puts an engine process together from its environment, and ends it with a sentence."""

import os
import signal
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn, Protocol

import structlog

from espha.deployment import DeploymentError, read_deployed
from espha.engine.acknowledged import acknowledgements
from espha.engine.agreement import Agreement
from espha.engine.checkpoints import Checkpoints
from espha.engine.choice import Choice, ask_for_shadow, choose
from espha.engine.clock import LogClock
from espha.engine.divided import DividedTopics
from espha.engine.engine import RUNTIME, Engine
from espha.engine.follower import Diverged
from espha.engine.forgiveness import Forgiveness
from espha.engine.inputs import Inputs
from espha.engine.memory import Memory
from espha.engine.quarantine import Quarantine
from espha.engine.shadow import ShadowError, Switched
from espha.kafka.broker_time import broker_time
from espha.kafka.order_log import OrderLog
from espha.kafka.reader import LogError
from espha.kafka.writer import WriterFailed
from espha.pipeline.job import BatchJob, BrokenRecordError
from espha.pipeline.session import open_session, worker_ended
from espha.pipeline.transactions import Transactions
from espha.protocol.activity import Doing
from espha.protocol.child_side import Control
from espha.protocol.deaths import note_of
from espha.protocol.settings import Settings
from espha.protocol.states import EndReason, EngineState, Step
from espha.records.catalyst import CodecError
from espha.recovery.healing import NoStateError, newest, sides, statuses
from espha.recovery.restore import Recovery, Restorable, requirements
from espha.recovery.scheduler import SnapshotScheduler
from espha.recovery.store import Snapshot
from espha.recovery.texts import Texts

_SPARK_S = 600
"""How long Spark may take to start, before this process is ended by SIGALRM."""
_GREETING_S = 120
"""How long a query's first, empty call may take; it starts a worker, on a machine that may do much
else."""
_INSTRUCTED_S = 0.5
"""The supervisor says at once what it has to say to a process that it starts."""
_LOG = structlog.get_logger()


class SilentSparkError(Exception):
    """A query does not pass rows on."""


class Greeted(Protocol):
    """What can be called: `espha.pipeline.job.BatchJob`."""

    def greet(self) -> None:
        """Make an empty call."""


def run_engine(settings: Settings) -> NoReturn:
    """Run an engine in this process until something ends it.

    It exits with the code of an `EndReason`.
    """
    control = Control((settings.http_host, settings.lifeline_port))
    control.doing.begin(Step.STARTING)
    control.report(EngineState.STARTING, False)
    recovery = Recovery(settings)
    control.divergence = recovery.divergences.facts()
    try:
        _assemble(settings, control, recovery).run()
    except (DeploymentError, CodecError) as error:
        _give_up(control, EndReason.MODEL, str(error))
    except Switched as error:
        _give_up(control, EndReason.SWITCHED, "", said=str(error))
    except ShadowError as error:
        _give_up(control, EndReason.SHADOW, f"the next model, in the shadow: {error}")
    except Diverged as error:
        # First of all: what follows asks others, and writes to a volume.
        control.let_go()
        control.report(EngineState.DIVERGED, False, reason=EndReason.DIVERGED)
        recovery.divergences.condemn()
        others = statuses(recovery.peers(), settings.name)
        text = f"{error}{sides(others, error.sequence, error.state)}"
        recovery.divergences.diverged(error.sequence, error.base, text, error.broken)
        control.divergence = recovery.divergences.facts()
        _give_up(control, EndReason.DIVERGED, text)
    except NoStateError as error:
        _give_up(control, EndReason.DIVERGED, f"{recovery.divergences.last.message}. {error}")
    except LogError as error:
        recovery.replay_failed()
        _give_up(control, EndReason.TOPIC, f"{error}{recovery.passed_over()}")
    except BrokenRecordError as error:
        _give_up(control, EndReason.RECORD, f"{type(error).__name__}: {error}")
    except WriterFailed as error:
        _give_up(control, error.reason, f"{type(error).__name__}: {error}")
    except Exception as error:
        # A bug, or a Spark failure: the traceback goes to the log, the sentence to the status.
        _LOG.exception("engine failed")
        reason = EndReason.WORKER if worker_ended(error) else EndReason.UNKNOWN
        _give_up(control, reason, f"{type(error).__name__}: {error}"[:500])
    raise AssertionError("an engine runs until something ends it")


class _Announced:
    """A job whose attempts to restore a state are steps of their own."""

    def __init__(self, job: Restorable, doing: Doing) -> None:
        self._job, self._doing = job, doing

    def restore(self, path: Path, offset: int, sequence: int) -> None:
        """See `Restorable`."""
        self._doing.begin(Step.STARTING)
        self._job.restore(path, offset, sequence)


def greet(job: Greeted, limit_s: float) -> None:
    """Make a query's first call.

    Rows pass Spark's buffers at once because of how these happen to work; another version of Spark
    might keep them back for ever.

    Raises:
        SilentSparkError: there is no answer.
    """

    def late(*_: object) -> None:
        raise SilentSparkError(
            f"the query does not answer an empty call within {limit_s:.0f} s; that may be because "
            f"of Spark's version, which is {version('pyspark')}, or of pyarrow's, which is "
            f"{version('pyarrow')}"
        )

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        job.greet()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _assemble(settings: Settings, control: Control, recovery: Recovery) -> Engine:
    choice = _choice(settings, control, recovery)
    xml, project, plan = choice.deployed
    signal.alarm(_SPARK_S)
    session = open_session(settings.spark_master, settings.jars, heap_mib=settings.jvm_heap_mib)
    job = BatchJob(session, xml, project, plan, collect=False)
    job.when_moved(control.doing.moved)
    greet(job, _GREETING_S)
    job.when_ended(
        jvm=lambda: _give_up(control, EndReason.UNKNOWN, "the JVM has ended"),
        worker=lambda: _give_up(control, EndReason.WORKER, "Spark's worker has ended"),
    )
    begin, wanted = recovery.restore(
        _Announced(job, control.doing),
        lambda: requirements(settings.bootstrap, project, plan, choice.since),
    )
    control.divergence = recovery.divergences.facts()
    meta = begin.header if begin else None
    transactions = Transactions(session, settings.bootstrap, plan.order_log)
    transactions.warm_up(plan.of_engines(), plan.scratch, settings.name)
    return Engine(
        name=settings.name,
        project=project,
        plan=plan,
        job=job,
        log=OrderLog(settings.bootstrap, plan.order_log, meta.order_log if meta else choice.start),
        inputs=Inputs(
            settings.bootstrap, list(plan.inputs.values()), meta.inputs if meta else None
        ),
        publisher=transactions,
        control=control,
        scheduler=_scheduler(settings, control, recovery, begin),
        topic_ids=dict(wanted.topics),
        start=meta,
        acknowledge=acknowledgements(settings.ack_log),
        forgiveness=Forgiveness(recovery.forgives, recovery.divergences.last.broken),
        careful=recovery.divergences.last.at is not None,
        agreement=_agreement(begin),
        clock=LogClock(lambda: broker_time(settings.bootstrap, plan.scratch)),
        quarantine=_quarantine(settings, control, wanted.topics[plan.order_log]),
        commit_interval_s=settings.commit_interval_ms / 1000,
        memory=Memory(lambda: job.worker),
        tail=choice.tail,
        wanted=choice.wanted,
        forced=choice.forced,
        ask_for_shadow=(
            ask_for_shadow(settings, choice.digest, recovery.peers) if choice.shadow else None
        ),
        newest=lambda: newest(recovery.peers(), settings.name),
        divided=_divided(settings, list(wanted.topics)).facts,
    )


def _choice(settings: Settings, control: Control, recovery: Recovery) -> Choice:
    given = read_deployed(settings.model, settings.prefix, settings.deployment)
    choice = choose(
        given,
        settings,
        Texts(settings.snapshots),
        recovery.peers,
        follows=lambda: control.follow.wait(_INSTRUCTED_S),
    )
    recovery.meant_for(choice.digest)
    control.divergence = recovery.divergences.facts()
    return choice


def _agreement(begin: Snapshot | None) -> Agreement:
    agreement = Agreement(Checkpoints())
    if begin:
        agreement.know(begin.header.sequence, begin.header.state)
    return agreement


def _divided(settings: Settings, topics: list[str]) -> DividedTopics:
    divided = DividedTopics(topics)
    divided.watch(settings.bootstrap)
    return divided


def _quarantine(settings: Settings, control: Control, log: str) -> Quarantine:
    note = note_of(settings)
    note.open()
    return Quarantine(control, note, log)


def _scheduler(
    settings: Settings, control: Control, recovery: Recovery, begin: Snapshot | None
) -> SnapshotScheduler:
    scheduler = SnapshotScheduler(
        recovery.store,
        recovery.divergences,
        engine=settings.name,
        runtime=RUNTIME,
        interval_s=settings.snapshot_interval_s,
        wanted=control.snapshot_wanted,
        chosen=lambda: control.snapshots or control.shadow,
    )
    if begin:
        scheduler.loaded(begin)
    return scheduler


def _give_up(control: Control, reason: EndReason, message: str, *, said: str = "") -> NoReturn:
    control.let_go()
    _LOG.error(said or message, state=reason.state, reason=reason)
    control.report(reason.state, False, message=message, reason=reason)
    sys.stdout.flush()
    # An orderly end of Spark takes a second, in which the znode would live on.
    os._exit(reason.code)
