"""The faults: how each strikes a deployment, and how its cause goes away again."""

import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from chaos.late_end import late_end
from chaos.model_change import model_change
from chaos.poisoned import EXITS, HANGS, RAISES, SPINS
from chaos.site import LOOK_S, Pod, wait_for_successor
from chaos.stroke import Mend, Stroke, kill_process, lasting, servers_down
from chaos.trial import Trial
from chaos.wires import cut, cut_broker, cut_standby, node, slow, switchover_without_zookeeper
from espha.local.processes import Identity, identify
from support.replicas import LIMIT_S, restarted
from support.servers import Server, wait_until

_IDLE_S = 900.0
"""Longer than brokers and clients keep connections on which nothing happens."""
_BACKLOG = 20_000
"""Rows: more than a batch may have, and than fit into one read."""


@dataclass(frozen=True)
class Fault:
    """A way to break a deployment.

    Attributes:
        text: what happens, for people.
        prepare: finds the victims before the moment comes, so that nothing stands between the
            moment and the stroke; returns what strikes. None: `chaos.cluster` strikes.
        takeovers: how many take-overs it may cost at most; one more is a false failover.
        needs: `proxy`, `disk`, `volume`, `clock`, `poison`, `power`, `cluster`, `plain` or `idle`
            (time without input): what a trial must have.
        moments: whether it also strikes in the middle of transactions.
    """

    text: str
    prepare: Callable[[Trial, Random], Callable[[], Stroke]] | None
    takeovers: int
    needs: str = ""
    moments: bool = True


def restart(trial: Trial, *pods: Pod) -> Mend:
    """Return what starts killed pods again when a successor is active, as a kubelet would."""

    def mend() -> None:
        for pod in pods:
            assert pod.process is not None
            pod.process.wait()
        survivors = [pod for pod in trial.pods if pod not in pods]
        if survivors:
            wait_for_successor(survivors)
        for pod in pods:
            pod.start()

    return mend


def kill(whom: Callable[[Pod], int]) -> Callable[[Trial, Random], Callable[[], Stroke]]:
    """Return the fault that kills one process of the active engine."""

    def prepare(trial: Trial, chance: Random) -> Callable[[], Stroke]:
        pod = trial.active()
        pid, mend = whom(pod), restarted(pod)

        def strike() -> Stroke:
            kill_process(pid)
            return Stroke(pod.name, mend)

        return strike

    return prepare


def engine_idle(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the active engine's process when rows come again after a quarter of an hour."""
    trial.load.toggle()
    time.sleep(_IDLE_S)
    seen = len(trial.reader.refresh())
    trial.load.toggle()
    wait_until(lambda: len(trial.reader.refresh()) > seen, LIMIT_S, "rows come again", LOOK_S)
    return kill(Pod.child)(trial, chance)


def backlog(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the active engine's process over many rows that have come at once."""
    pod = trial.active()
    pid, mend, pause = pod.child(), restarted(pod), chance.uniform(0, 2)
    trial.load.burst(_BACKLOG)
    time.sleep(pause)

    def strike() -> Stroke:
        kill_process(pid)
        return Stroke(pod.name, mend, f"{pause * 1000:.0f} ms behind the rows")

    return strike


def engine_takeover(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the active engine's process, and the next one's while it takes over."""
    first, second = trial.active(), trial.standbys()[0]
    pids, mend = (first.child(), second.child()), restarted(first, second)
    pause = chance.uniform(0, 0.12)

    def strike() -> Stroke:
        kill_process(pids[0])
        time.sleep(pause)
        kill_process(pids[1])
        return Stroke(f"{first.name}, {second.name}", mend, f"{pause * 1000:.0f} ms apart")

    return strike


def pair(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the active engine's process and the next one's at once."""
    first, second = trial.active(), trial.standbys()[0]
    pids, mend = (first.child(), second.child()), restarted(first, second)

    def strike() -> Stroke:
        for pid in pids:
            kill_process(pid)
        return Stroke(f"{first.name}, {second.name}", mend)

    return strike


def every_engine(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill all engine processes at once."""
    pids, mend = [pod.child() for pod in trial.pods], restarted(*trial.pods)

    def strike() -> Stroke:
        for pid in pids:
            kill_process(pid)
        return Stroke("all", mend)

    return strike


def supervisor(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the active engine's supervisor."""
    pod = trial.active()

    def strike() -> Stroke:
        pod.kill()
        return Stroke(pod.name, restart(trial, pod))

    return strike


def whole_pod(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the active engine with its supervisor and all else in its pod."""
    pod = trial.active()

    def strike() -> Stroke:
        pod.kill_pod()
        return Stroke(pod.name, restart(trial, pod))

    return strike


def standby(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the process of an engine that is not active."""
    pod = chance.choice(trial.standbys())
    pid, mend = pod.child(), restarted(pod)

    def strike() -> Stroke:
        kill_process(pid)
        return Stroke(pod.name, mend)

    return strike


def switchover(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Ask the active engine to hand over, to the next one or to one by name."""
    pod, standbys = trial.active(), trial.standbys()
    asked, before = chance.choice([None, *(each.name for each in standbys)]), trial.epoch()

    def strike() -> Stroke:
        trial.ask(pod, "/switchover", json.dumps({"to": asked}))

        def mend() -> None:
            # The old one goes on where its heir is late.
            wait_until(lambda: trial.epoch() > before, LIMIT_S, "a take-over", LOOK_S)
            wait_for_successor(trial.pods)

        return Stroke(pod.name, mend, f"to {asked or 'the next one'}")

    return strike


def freeze_engine(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Stop the active engine's processes for 0.1 to 20 s; its supervisor goes on."""
    pod, duration = trial.active(), 0.1 * 200 ** chance.random()

    def strike() -> Stroke:
        pod.signal_engine(signal.SIGSTOP)
        return lasting(duration, pod.name, lambda: pod.signal_engine(signal.SIGCONT))

    return strike


def freeze(whom: Callable[[Pod], int]) -> Callable[[Trial, Random], Callable[[], Stroke]]:
    """Return the fault that stops one process of the active engine for 0.1 to 20 s."""

    def prepare(trial: Trial, chance: Random) -> Callable[[], Stroke]:
        pod, duration = trial.active(), 0.1 * 200 ** chance.random()
        victim = identify(whom(pod))
        assert victim is not None, "it runs"

        def strike() -> Stroke:
            victim.signal(signal.SIGSTOP)
            return lasting(duration, pod.name, lambda: _thaw(victim))

        return strike

    return prepare


def _supervisor(pod: Pod) -> int:
    assert pod.process is not None, "it runs"
    return pod.process.pid


def _thaw(victim: Identity) -> None:
    victim.signal(signal.SIGCONT)  # who was killed meanwhile hears nothing


def freeze_pod(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Stop the active engine and its supervisor for 0.1 to 20 s: it wakes up as a zombie."""
    pod, duration = trial.active(), 0.1 * 200 ** chance.random()

    def strike() -> Stroke:
        pod.freeze()
        return lasting(duration, pod.name, pod.thaw)

    return strike


def broker_leader(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the broker that leads an output topic."""
    topic = chance.choice(list(trial.plan.outputs.values()))
    return _servers(trial, chance, [trial.site.kafka.leader_of(topic)])


def broker_stop(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """End the broker that leads an output topic, as a roll-out does: it hands over first."""
    topic = chance.choice(list(trial.plan.outputs.values()))
    server = trial.site.kafka.leader_of(topic)

    def back() -> None:
        assert server.process is not None, "it ran"
        server.process.wait(LIMIT_S)
        server.start()

    def strike() -> Stroke:
        server.signal(signal.SIGTERM)
        return Stroke(server.name, back)

    return strike


def broker_coordinator(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the broker that coordinates the transactions."""
    return _servers(trial, chance, [trial.site.kafka.coordinator_of(trial.transactional_id)])


def broker_controller(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the broker that is the active controller: who shuts it out must be found first."""
    kafka = trial.site.kafka
    wait_until(lambda: kafka.controller() is not None, LIMIT_S, "a controller")
    controller = kafka.controller()
    assert controller is not None, "there was one a moment ago"
    return _servers(trial, chance, [controller])


def two_brokers(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill two of three brokers: nothing can be written until one of them is back."""
    return _servers(trial, chance, chance.sample(trial.site.kafka.servers, 2))


def power(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Cut the power of all brokers at once, half of the time of all engines, too.

    What a broker's disk was not told to keep is gone. Power is back after up to 10 s.
    """
    kafka, pods = trial.site.kafka, trial.pods if chance.random() < 0.5 else []
    duration = chance.uniform(0, 10)

    def strike() -> Stroke:
        for disk in kafka.disks:
            disk.cut()
        for pod in pods:
            pod.kill_pod()
        for server in kafka.servers:
            server.kill()

        def back() -> None:
            for disk, server in zip(kafka.disks, kafka.servers, strict=True):
                disk.off()
                disk.on()
                server.start()
            for pod in pods:
                pod.stop()  # collects it
                pod.start()

        whom = "all brokers and engines" if pods else "all brokers"
        return lasting(duration, whom, back)

    return strike


def broker_disk_full(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Fill the disk of the broker that leads an output topic, or of all: it ends at its next write.

    There is room again after up to 10 s; then brokers start anew, as a kubelet has them do.
    """
    kafka = trial.site.kafka
    leader = kafka.leader_of(chance.choice(list(trial.plan.outputs.values())))
    servers = chance.choice([[leader], kafka.servers])
    disks = [kafka.disks[kafka.servers.index(server)] for server in servers]
    duration = chance.uniform(0, 10)

    def strike() -> Stroke:
        for disk in disks:
            disk.fill()

        def back() -> None:
            for disk, server in zip(disks, servers, strict=True):
                disk.free()
                server.kill()
                server.start()

        return lasting(duration, ", ".join(server.name for server in servers), back)

    return strike


def zookeeper_server(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill a ZooKeeper server that does not lead."""
    leader = trial.site.zookeeper_leader()
    others = [server for server in trial.site.zookeeper.servers if server is not leader]
    return _servers(trial, chance, [chance.choice(others)])


def zookeeper_leader(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill the ZooKeeper server that leads."""
    return _servers(trial, chance, [trial.site.zookeeper_leader()])


def zookeeper_quorum(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Kill two of three ZooKeeper servers: no take-over is possible, output goes on."""
    return _servers(trial, chance, chance.sample(trial.site.zookeeper.servers, 2))


def disk_full(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Fill the disks under the snapshots, see one fail, and kill the active engine."""
    pod = trial.active()
    pid = pod.child()
    for disk in trial.disks.values():
        disk.fill()
    for other in trial.pods:
        trial.ask(other, "/snapshot")
    wait_until(
        lambda: any(_failures(other) for other in trial.pods), LIMIT_S, "a snapshot that fails"
    )

    again = restarted(pod)

    def strike() -> Stroke:
        kill_process(pid)

        def mend() -> None:
            again()
            wait_until(lambda: pod.is_in("standby", "active"), LIMIT_S, f"{pod.name} is back")
            for disk in trial.disks.values():
                disk.free()

        return Stroke(pod.name, mend)

    return strike


def disk_hang(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Let the active engine's disk hang for up to 20 s while it writes a snapshot, and kill it."""
    pod, duration = trial.active(), chance.uniform(0, 20)
    pid, volume = pod.child(), trial.volumes[pod.name]

    def strike() -> Stroke:
        volume.hang()
        trial.ask(pod, "/snapshot")
        time.sleep(chance.uniform(0, 0.5))
        kill_process(pid)
        return lasting(duration, pod.name, volume.go_on)

    return strike


def clock_jump(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Turn the active engine's wall clock by up to a day, kill it, and turn it back."""
    pod = trial.active()
    pid = pod.child()
    clock, jump = trial.clocks[pod.name], chance.choice((-1, 1)) * chance.randint(10, 86_400)
    clock.set(jump)
    trial.random_moment(chance)
    again = restarted(pod)

    def strike() -> Stroke:
        kill_process(pid)

        def mend() -> None:
            again()
            clock.set(0)

        return Stroke(pod.name, mend, f"{jump:+d} s")

    return strike


_POISONS = ((RAISES, "exception"), (EXITS, "end of the worker"), (HANGS, "it waits for ever"))


def poison(
    *kinds: tuple[int, str], limit_s: float = LIMIT_S
) -> Callable[[Trial, Random], Callable[[], Stroke]]:
    """Return the fault that puts a row into the load on which each engine dies, in one way of some.

    Args:
        kinds: rows of `chaos.poisoned`, and what comes of each, for people.
        limit_s: after so long it must have been set aside.
    """

    def prepare(trial: Trial, chance: Random) -> Callable[[], Stroke]:
        pod, before = trial.active(), trial.quarantined()
        kind, text = chance.choice(kinds)

        def strike() -> Stroke:
            trial.publish(kind)

            def mend() -> None:
                wait_until(lambda: trial.quarantined() > before, limit_s, "the row is set aside")

            return Stroke(pod.name, mend, text)

        return strike

    return prepare


def snapshot_kill(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Ask the last standby for a snapshot; kill it, or the active engine, 0 to 1 s later.

    What it takes until the moment is there comes on top.
    """
    writer = trial.standbys()[-1]
    victim = chance.choice([writer, trial.active()])
    pid, mend, pause = victim.child(), restarted(victim), chance.uniform(0, 1)
    trial.ask(writer, "/snapshot")
    time.sleep(pause)

    def strike() -> Stroke:
        kill_process(pid)
        whom = "who writes it" if victim is writer else "the active one"
        return Stroke(victim.name, mend, f"{whom}, {pause * 1000:.0f} ms apart")

    return strike


def _failures(pod: Pod) -> int:
    return int(pod.status().get("snapshot_failures") or 0)


def _servers(trial: Trial, chance: Random, servers: list[Server]) -> Callable[[], Stroke]:
    return partial(servers_down, servers, chance.uniform(0, 10))


FAULTS = {
    "switchover": Fault("active engine asked to hand over", switchover, 1),
    "engine": Fault("engine process killed", kill(Pod.child), 1),
    "jvm": Fault("JVM of the engine killed", kill(Pod.jvm), 1),
    "worker": Fault("Spark's worker killed", kill(Pod.worker), 1),
    "backlog": Fault("engine killed over a backlog of 20,000 rows", backlog, 1),
    "engine-takeover": Fault(
        "engine killed, successor killed in its take-over", engine_takeover, 2
    ),
    "pair": Fault("active and next engine killed at once", pair, 2),
    "all": Fault("all engines killed at once", every_engine, 1),
    "standby": Fault("a standby's engine killed", standby, 0),
    "supervisor": Fault("supervisor killed", supervisor, 1),
    "pod": Fault("engine and supervisor killed", whole_pod, 1),
    "freeze-engine": Fault("engine frozen for 0.1 to 20 s", freeze_engine, 1),
    "freeze-jvm": Fault("JVM of the engine frozen for 0.1 to 20 s", freeze(Pod.jvm), 1),
    "freeze-worker": Fault("Spark's worker frozen for 0.1 to 20 s", freeze(Pod.worker), 1),
    "freeze-main": Fault("engine process alone frozen for 0.1 to 20 s", freeze(Pod.child), 1),
    "freeze-supervisor": Fault("supervisor alone frozen for 0.1 to 20 s", freeze(_supervisor), 1),
    "freeze-pod": Fault("pod frozen for 0.1 to 20 s (zombie)", freeze_pod, 1),
    "broker-leader": Fault("broker killed that leads the output topic", broker_leader, 0),
    "broker-stop": Fault("broker ended that leads the output topic", broker_stop, 0),
    "broker-coordinator": Fault(
        "broker killed that coordinates transactions", broker_coordinator, 0
    ),
    "broker-controller": Fault("broker killed that is the controller", broker_controller, 0),
    "two-brokers": Fault("two of three brokers killed", two_brokers, 1),
    "power": Fault("all brokers without power, disks keep what is synced", power, 2, needs="power"),
    "broker-disk-full": Fault(
        "disks of one or all brokers full", broker_disk_full, 2, needs="power"
    ),
    "zookeeper-server": Fault("a following ZooKeeper server killed", zookeeper_server, 0),
    "zookeeper-leader": Fault("the leading ZooKeeper server killed", zookeeper_leader, 0),
    "zookeeper-quorum": Fault("two of three ZooKeeper servers killed", zookeeper_quorum, 1),
    "cut-zookeeper": Fault("active engine cut from ZooKeeper", cut("zookeeper"), 1, needs="proxy"),
    "cut-kafka": Fault("active engine cut from Kafka", cut("kafka"), 1, needs="proxy"),
    "cut-broker": Fault(
        "active engine cut from one broker that it needs", cut_broker, 1, needs="proxy"
    ),
    "cut-standby": Fault(
        "engine killed, its successor cut from the input's leader", cut_standby, 2, needs="proxy"
    ),
    "snapshot-kill": Fault(
        "the writer of a snapshot killed, or the active engine", snapshot_kill, 1
    ),
    "disk-full": Fault("engine killed, snapshots on full disks", disk_full, 1, needs="disk"),
    "disk-hang": Fault("engine killed whose disk hangs", disk_hang, 1, needs="volume"),
    "clock": Fault("engine killed whose clock had jumped", clock_jump, 1, needs="clock"),
    "poison": Fault(
        "a row on which engines die", poison(*_POISONS), 6, needs="poison", moments=False
    ),
    "poison-spins": Fault(
        "a row over which engines compute without an end",
        poison((SPINS, "it computes without an end"), limit_s=2 * LIMIT_S),
        6,
        needs="poison",
        moments=False,
    ),
    "late-end": Fault("the end of a transaction comes again in the next one", late_end, 0),
    "cut-both": Fault("active engine cut from both", cut("zookeeper", "kafka"), 1, needs="proxy"),
    "node": Fault("the active engine's node goes away without a word", node, 1, needs="proxy"),
    "slow": Fault("all engines' network is slow and loses packets", slow, 1, needs="proxy"),
    "switchover-zookeeper": Fault(
        "two ZooKeeper servers killed in a switchover", switchover_without_zookeeper, 1
    ),
    "model-change": Fault(
        "active pod killed when the order log goes over to another model",
        model_change,
        2,
        needs="plain",
    ),
    "engine-idle": Fault(
        "engine killed that had no input for 15 minutes", engine_idle, 1, needs="idle"
    ),
    "operator": Fault("operator killed, half of the time an engine too", None, 1, needs="cluster"),
}
"""All faults, by the names that the command knows."""
