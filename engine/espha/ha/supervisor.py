"""Process 1 of a pod: owns the ZooKeeper session, runs the child, answers for both over HTTP.

The algorithm, for each life of the child:

1. start the child, and open a session beside it;
2. when the child first says that it is in sync, make the znode;
3. when that znode is the lowest, tell the child that it is active;
4. when the child ends, close the session at once (the follower's watch fires in milliseconds,
   where an open session would have to time out), pause, and begin again.

A child is ended by force when it is silent or does not get on, and an active one when Kafka answers
others but not this pod. Where it does not end (a disk that hangs lets no process go that waits for
it), its place is given up all the same, and the next life waits for its end. Behind an active
engine that does not take its input, the next one in the queue closes its session.
"""

import signal
import sys
import threading
import time
from pathlib import Path

import structlog

from espha.ha.child import Child, reap_orphans
from espha.ha.deaths import DeathRegister, log_death
from espha.ha.election import Membership
from espha.ha.failure_detector import FailureDetector
from espha.ha.family import Family
from espha.ha.heartbeat import HeartbeatServer
from espha.ha.kafka_probe import KafkaProbe, Pace, others_reach_more
from espha.ha.model_change import ModelChange
from espha.ha.pauses import Pauses
from espha.ha.progress_judge import ProgressJudge
from espha.ha.spawner import Spawner
from espha.ha.status_server import Models, serve_status
from espha.ha.switchover import HandOver
from espha.ha.volume import VolumeWatch
from espha.ha.witness import Witness
from espha.ha.zookeeper import Secret, hosts, located
from espha.protocol.deaths import note_of
from espha.protocol.http import RESOLVER, addresses
from espha.protocol.model_change import ModelRequest
from espha.protocol.settings import Settings
from espha.protocol.states import EngineState, ExitCode, KillReason, Role, SwitchoverReason
from espha.protocol.status import (
    ChildStatus,
    DivergenceFacts,
    EngineProgress,
    InputProgress,
    Progress,
    ReplicaStatus,
)
from espha.protocol.switchover import SwitchoverAnswer
from espha.recovery.store import SnapshotStore
from espha.recovery.texts import Texts

_HEALTHY_AFTER_S = 2.0
"""A child that has been in sync for so long does not crash in a loop."""
_FIRST_WORD_S = 300.0
_TICK_S = 0.1
LEAVE_S = 24.0
"""So long an active replica may take to hand over when it is to end.

Shorter than a pod's grace, and longer than brokers take to shut out one that a drain takes along,
also with the patient settings for busy machines: until then a commit waits, and the end of the
child would abort it. Meanwhile the supervisor goes on to end a child that hangs.
"""
_SILENT_S = 10.0
"""A child reports ten times a second; one that is silent for so long is frozen, and is killed.

For an active engine, whose silence others wait for, the limit is ESPHA_FAILURE_TIMEOUT_MS or what
`FailureDetector` makes of it.
"""
_HANGS = (
    "the process was killed and does not end, as where a volume does not answer; it has no role "
    "any more, and the next one is started when it has ended"
)
_COUNTED_S = 0.1
"""ZooKeeper writes in a few milliseconds; where it does not, the child's end waits no longer."""
_ENDLESS = "it did not come to an end"
_LOG = structlog.get_logger()


class Supervisor:
    """Keeps one child running and, unless `election` is False, in the election.

    The child's status is written by the thread that listens to it and read by all others, without
    a lock: it is immutable, and replaced as a whole.
    """

    def __init__(self, settings: Settings, spawner: Spawner, election: bool = True) -> None:
        self._settings = settings
        self._spawner = spawner
        self._election = election
        self._stop = threading.Event()
        self._leaves = False
        self._child_ended = threading.Event()
        self._code_known = threading.Event()
        self._code = 0
        self._restarts = 0
        self._status: ChildStatus | None = None
        """The child's last line; None: it has not said anything in this life."""
        self._trouble: ChildStatus | None = None
        """The last line with a message, until the child is in sync again."""
        self._last_error: tuple[str, float] | None = None
        self._divergence: DivergenceFacts | None = None
        self._kills: dict[KillReason, int] = {}
        self._member: Membership | None = None
        self._heartbeats: HeartbeatServer | None = None
        self._child: Child | None = None
        self._hand_over: HandOver | None = None
        self._in_sync_since: float | None = None
        self._detector = self._new_detector()
        self._judge = ProgressJudge(settings.failure_timeout_ms / 1000, _TICK_S)
        self._witness = Witness(settings.failure_timeout_ms / 1000, settings.peers)
        self._kafka: KafkaProbe | None = None
        self._pauses = Pauses(self._stop, None, _TICK_S)
        self._deaths = DeathRegister(
            settings.name, settings.root, note_of(settings), Secret(settings.token)
        )
        self._blameless = False
        """The child's end says nothing about its work."""
        self._stands = self._hangs = False
        """Whether this life has a place in the election; whether its child was killed in vain."""
        self._asks = Pace(_TICK_S)
        self._depositions = 0
        self._follows = False
        """The order log has gone over to another model since this supervisor lives."""
        self._volume = VolumeWatch(settings.snapshots)

    def run(self) -> int:
        """Supervise until SIGTERM or SIGINT; return the exit code for the process.

        An active replica hands over first. A second signal ends the child at once.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._end())
        folder = self._settings.snapshots
        server = serve_status(
            (self._settings.http_host, self._settings.http_port),
            self.status,
            SnapshotStore(Path(folder)) if folder else None,
            self._ask_snapshot,
            hand_over=self._switch_over if self._election else None,
            models=Models(Texts(folder).get, self._change_model),
            token=self._settings.token,
        )
        if self._election:
            names = hosts(self._settings.peers) + hosts(self._settings.zookeeper)
            RESOLVER.keep(names, self._stop)
            self._kafka = KafkaProbe(
                self._settings.bootstrap, self._settings.failure_timeout_ms, _TICK_S
            )
            self._pauses = Pauses(self._stop, self._kafka, _TICK_S)
        while not self._stop.is_set():
            self._live()
            if self._in_sync_since is None and self._code < 0:
                self._spawner.distrust()
            elif self._in_sync_since and time.monotonic() - self._in_sync_since > _HEALTHY_AFTER_S:
                self._pauses.reset()
            told = self._status
            reached = _sequence(told.progress if told else None)
            if self._pauses.rest(self._deaths.pause_s(reached)):
                break
            self._restarts += 1
        if self._kafka:
            self._kafka.stop()
        self._spawner.stop()
        server.shutdown()
        return 0

    def status(self) -> ReplicaStatus:
        """Return what `/status` shows: the child's last line and the supervisor's own facts."""
        member, told, trouble = self._member, self._status, self._trouble
        heartbeats = self._heartbeats
        alive = not (self._child is None or self._child_ended.is_set() or self._hangs)
        state = told.state if told else EngineState.STARTING
        progress = told.progress if told else None
        room = self._volume.room
        return ReplicaStatus(
            name=self._settings.name,
            role=Role.ACTIVE if alive and state is EngineState.ACTIVE else Role.STANDBY,
            state=state if alive else EngineState.DOWN,
            in_sync=alive and told is not None and told.in_sync,
            message=self._message(progress),
            reason=trouble.reason if trouble else None,
            last_error=self._last_error[0] if self._last_error else "",
            last_error_at=self._last_error[1] if self._last_error else None,
            restarts=self._restarts,
            kills=self._kills,
            znode=member.znode if member else None,
            zookeeper=member.state if member else None,
            watched=heartbeats.watched if heartbeats else None,
            kafka_reachable=self._kafka.reachable if self._kafka else None,
            kafka_silent_ms=self._kafka.silent_ms if self._kafka else (),
            kafka_heard_ms=self._kafka.heard_ms if self._kafka else (),
            step=told.activity.step if alive and told and told.activity else None,
            step_s=round(self._judge.stands_s, 1) if alive else None,
            unordered_s=told.unordered_ms / 1000 if told and told.unordered_ms else None,
            held_topic=told.held.topic if told and told.held else "",
            held_s=told.held.age_s if told and told.held else 0.0,
            depositions=self._depositions,
            diverged_total=self._divergence.diverged_total if self._divergence else None,
            diverged=self._divergence.diverged if self._divergence else "",
            diverged_at=self._divergence.diverged_at if self._divergence else None,
            snapshot_age_s=_snapshot_age_s(progress),
            volume_bytes=room.total if room else None,
            volume_free_bytes=room.free if room else None,
            progress=progress,
        )

    def _message(self, progress: Progress | None) -> str:
        if self._hangs:
            return _HANGS
        trouble = self._trouble
        return trouble.message if trouble else self._deaths.trouble(_sequence(progress))

    def _live(self) -> None:
        """Live one life of the child, from its start to its end."""
        self._status = None
        self._detector = self._new_detector()
        self._hand_over = None
        self._in_sync_since = None
        self._child_ended.clear()
        self._blameless = False
        self._stands = True
        self._code_known.clear()
        self._child = self._heartbeats = self._member = None
        try:
            if self._election:
                self._stand()
            self._child = Child(self._spawner, self._heard, self._child_ended.set, self._exited)
            if self._follows:
                self._child.follow()
            if not self._election:
                self._child.make_active()  # there is nobody else
            if self._member:
                self._deaths.follow(self._member.client, self._child)
                known = self._settings
                self._hand_over = HandOver(
                    known.name, self._member, self._child, known.failure_timeout_ms, known.peers
                )
            self._watch_over(self._child)
        except (RuntimeError, OSError) as error:  # no thread, or nothing, is left
            _LOG.error("the machine has no room for this life", error=repr(error))
            text = f"the machine has no room for it: {error!r}"
            self._note(ChildStatus(state=EngineState.FAILED, in_sync=False, message=text))
            self._blameless = True
            if self._child:
                self._child.kill()
            else:
                self._exited(ExitCode.FAILED)
        finally:
            self._step_down()
        self._code_known.wait()

    def _stand(self) -> None:
        """Begin to stand for election, and to tell others that this process lives."""
        told = self._settings
        self._heartbeats = heartbeats = HeartbeatServer(
            told.http_host,
            told.heartbeat_port,
            located(told.zookeeper),
            told.failure_timeout_ms,
        )
        self._member = Membership(
            told.zookeeper,
            told.root,
            told.name,
            told.session_ms,
            self._elected,
            address=heartbeats.address,
            failure_timeout_ms=told.failure_timeout_ms,
            token=told.token,
            succeeds=self._succeeds,
            ready=lambda: self._status is not None and self._status.in_sync,
            on_doubt=self._doubt,
            woke_at=lambda: heartbeats.woke_at,
        )

    def _step_down(self) -> None:
        """Leave the election, once a life; nothing on the way may wait for a disk."""
        if not self._stands:
            return
        self._stands = False
        if self._heartbeats:
            self._heartbeats.close()  # first: it needs no ZooKeeper
        counted = None
        if self._blameless or self._stop.is_set():
            self._deaths.forget()
        else:
            counted = self._deaths.count()
        if self._member:
            self._member.close()
        log_death(counted)

    def _new_detector(self) -> FailureDetector:
        return FailureDetector(self._settings.failure_timeout_ms / 1000, _TICK_S)

    def _watch_over(self, child: Child) -> None:
        """Wait for the child's end; bring it about when the child is frozen or cut off."""
        family = Family(self._spawner.pid)
        self._judge.begin(family)
        chosen = False
        while not self._child_ended.wait(_TICK_S):
            reap_orphans(self._spawner.pid)
            if self._stop.is_set():
                self._leave(child)
            # The last one in the queue writes the snapshots: the active one only where it is alone.
            if self._member and self._member.last is not chosen:
                chosen = self._member.last
                child.choose(chosen)
            self._detector.tick()
            self._judge.tick()
            self._pauses.tick()
            reason = self._reason_to_kill()
            if reason:
                self._kill(child, family, reason)
            elif self._member and self._member.next_in_line:
                self._bear_witness(self._member)

    def _kill(self, child: Child, family: Family, reason: KillReason) -> None:
        """End the child; with all below the JVM, and a frozen JVM too, where it hangs there."""
        told = self._status.activity if self._status else None
        waits = reason is KillReason.STUCK and told is not None and not told.step.computes
        self._blameless = waits or reason in (KillReason.CUT_OFF, KillReason.STOPPED)
        why = _ENDLESS if reason is KillReason.STUCK else ""
        counted = None if self._blameless else self._deaths.count(why, _COUNTED_S)
        child.kill()  # before all else: others wait for that, and a log may hang
        log_death(counted)
        _LOG.error(
            f"the child is killed: {reason.sentence}",
            reason=reason,
            silent_s=round(self._detector.silent_s, 1),
            step=told.step if told else None,
            step_s=round(self._judge.stands_s, 1),
            sequence=told.sequence if told else None,
            inputs=told.inputs if told else None,
        )
        self._kills = {**self._kills, reason: self._kills.get(reason, 0) + 1}
        sound = reason not in (KillReason.STOPPED, KillReason.STUCK) or family.kill_below()
        if not self._child_ended.wait(self._settings.failure_timeout_ms / 1000):
            self._hangs = True
            _LOG.error(_HANGS)
            self._step_down()
            while not self._child_ended.wait(_TICK_S):
                reap_orphans(self._spawner.pid)
            self._hangs = False
        if not sound:
            self._spawner.distrust()

    @property
    def _leads(self) -> bool:
        """Whether others wait for what the child does."""
        active = self._status is not None and self._status.state is EngineState.ACTIVE
        return active or (self._member is not None and self._member.leads)

    def _reason_to_kill(self) -> KillReason | None:
        leads, silent = self._leads, self._detector.silent_s
        if leads:
            over = self._detector.suspected
        else:
            over = silent > (_SILENT_S if self._status else _FIRST_WORD_S)
        # First of all who is frozen: such an end says nothing about what was under way.
        reason = self._judge.verdict(leads) or (KillReason.SILENT if over else None)
        return reason or (KillReason.CUT_OFF if self._is_cut_off() else None)

    def _is_cut_off(self) -> bool:
        """Say whether this one is elected, and another one could that hears more brokers."""
        if not self._member or not self._member.leads or not self._kafka:
            return False
        answers = self._kafka.answers
        if all(answers) or not self._asks.due(answers):
            return False
        try:
            if not others_reach_more(self._settings.peers, answers, self._kafka.silent_ms):
                return False
        except (RuntimeError, OSError) as error:  # no thread, or nothing, is left
            _LOG.error("nobody can be asked about Kafka", error=repr(error))
            return False
        # A broker that had only paused may have answered while the others were asked.
        return self._kafka.answers == answers

    def _bear_witness(self, member: Membership) -> None:
        """Depose the active engine when it does not take its input, and it is not Kafka's fault."""
        try:
            if self._kafka and self._kafka.settled and self._witness.suspects():
                _LOG.error("the active engine does not take its input; its session is closed")
                member.depose_leader()
                self._depositions += 1
                self._witness.deposed()
        except (RuntimeError, OSError) as error:  # no thread, or nothing, is left
            _LOG.error("nobody can be asked about the active engine", error=repr(error))

    def _heard(self, status: ChildStatus) -> None:
        if status.in_sync and not (self._status and self._status.in_sync):
            self._detector = self._new_detector()  # its start is no measure
            self._in_sync_since = time.monotonic()
        fell_behind = self._status is not None and self._status.in_sync and not status.in_sync
        self._status = status
        self._detector.heartbeat()
        self._judge.heard(status.activity)
        self._witness.heard(status)
        if status.message:
            self._note(status)
        elif status.in_sync:
            self._trouble = None
        if status.divergence:  # stays visible until the next life has read it from its volume
            self._divergence = status.divergence
        if self._member and status.in_sync:
            self._member.join(self._lifeline(status))
        if self._member and fell_behind and not status.state.terminal:
            self._member.fall_back()  # others are further
        if self._member and status.state is EngineState.LEAVING:
            self._follows = True
            self._member.withdraw()
        if self._hand_over:
            self._hand_over.heard(status)

    def _note(self, trouble: ChildStatus) -> None:
        if self._trouble is None or self._trouble.message != trouble.message:
            self._last_error = trouble.message, round(time.time(), 3)
        self._trouble = trouble

    def _switch_over(self, to: str | None) -> SwitchoverAnswer:
        if self._hand_over is None:
            reason = SwitchoverReason.NOT_RUNNING
            return SwitchoverAnswer(reason=reason, message="the engine does not run")
        return self._hand_over.ask(self.status(), to)

    def _change_model(self, request: ModelRequest) -> SwitchoverAnswer:
        child, member = self._child, self._member
        if child is None or member is None or self._child_ended.is_set():
            reason = SwitchoverReason.NOT_RUNNING
            return SwitchoverAnswer(reason=reason, message="the engine does not run")
        name = self._settings.name
        change = ModelChange(
            child,
            peers=lambda: addresses(self._settings.peers),
            others=lambda: [one for one in member.queue() if one != name],
        )
        return change.ask(self.status(), request)

    def _ask_snapshot(self) -> bool:
        child = self._child
        if child is None or self._child_ended.is_set():
            return False
        child.ask_snapshot()
        return True

    def _lifeline(self, status: ChildStatus) -> str:
        """Return where others can hold on to the child; empty: nowhere."""
        if self._heartbeats is None or not status.lifeline:
            return ""
        return f"{self._heartbeats.host}:{status.lifeline}"

    def _succeeds(self, dead: list[str]) -> bool:
        """Say whether these dead ones leave their place to this one, as far as its log says."""
        told = self._status
        if told is None or told.state is not EngineState.STANDBY or not told.in_sync:
            return False
        progress = told.progress
        if isinstance(progress, InputProgress):
            return True  # it fences, and reads its place back: to lead too early does no harm
        return isinstance(progress, EngineProgress) and progress.active in ("", *dead)

    def _elected(self) -> None:
        if self._child:
            self._child.make_active()

    def _doubt(self) -> None:
        if self._child:
            self._child.ask_proof()

    def _exited(self, code: int) -> None:
        self._code = code
        self._code_known.set()
        _LOG.warning("child ended", code=code, restarts=self._restarts)

    def _end(self) -> None:
        """Begin to end, or do so at once when that has begun; runs within a signal's handler."""
        if self._stop.is_set() and self._child:
            self._child.kill()
        self._stop.set()

    def _leave(self, child: Child) -> None:
        """End the child, once it has handed over: others wait for that, and this thread cannot."""
        if self._leaves:
            return
        self._leaves, hand_over = True, self._hand_over

        def leave() -> None:
            try:
                if hand_over:
                    hand_over.leave(self.status, self._child_ended, LEAVE_S)
            finally:
                child.kill()

        threading.Thread(target=leave, name="leave", daemon=True).start()


def _sequence(progress: Progress | None) -> int:
    """Return the order record that an engine has reached; -1 for an adapter, and before a word."""
    return progress.sequence if isinstance(progress, EngineProgress) else -1


def _snapshot_age_s(progress: Progress | None) -> float | None:
    """Return the seconds since the newest snapshot last said all there was; None without one."""
    if not isinstance(progress, EngineProgress) or progress.snapshot_made is None:
        return None
    return round(max(0.0, time.time() - progress.snapshot_made), 1)


def supervise(settings: Settings, spawner: Spawner, election: bool = True) -> None:
    """Run a supervisor as this process, and exit with its code."""
    sys.exit(Supervisor(settings, spawner, election).run())
