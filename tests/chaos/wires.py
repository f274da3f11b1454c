"""Faults of the network and of what hangs on it: nodes that go away, wires that are slow."""

import time
from collections.abc import Callable
from random import Random

from chaos.proxy import Proxy, Weather
from chaos.site import SERVICES, Pod, cables, wait_for_successor
from chaos.stroke import Stroke, kill_process, lasting, servers_down
from chaos.trial import Trial
from support.replicas import restarted


def node(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Take the active engine's node away without a word, and give it back started anew.

    Nobody hears from it and its connections stay open, until it starts again: then its peers are
    told that it knows nothing of them.
    """
    pod, pulled = trial.active(), _cables(trial.active().name)
    others = [each for each in trial.pods if each is not pod]

    def strike() -> Stroke:
        _proxy(trial).cut(*pulled)
        pod.freeze()

        def mend() -> None:
            wait_for_successor(others)
            pod.stop()
            _proxy(trial).heal(*pulled)
            pod.start()

        return Stroke(pod.name, mend)

    return strike


def slow(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Let all engines' packets be late, and some be lost and sent again, for 5 to 20 s."""
    weather = Weather(chance.uniform(1, 20), chance.uniform(0, 20), chance.uniform(0, 0.02))
    pulled = [cable for pod in trial.pods for cable in _cables(pod.name)]
    duration = chance.uniform(5, 20)

    def strike() -> Stroke:
        _proxy(trial).slow(weather, *pulled)
        return lasting(
            duration, "all", lambda: _proxy(trial).slow(Weather(), *pulled), f", {weather}"
        )

    return strike


def switchover_without_zookeeper(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Ask the active engine to hand over, and kill two ZooKeeper servers 0 to 100 ms later."""
    pod = trial.active()
    servers = chance.sample(trial.site.zookeeper.servers, 2)
    pause, duration = chance.uniform(0, 0.1), chance.uniform(1, 10)

    def strike() -> Stroke:
        trial.ask(pod, "/switchover", "{}")
        time.sleep(pause)
        return servers_down(servers, duration, pod.name, f", {pause * 1000:.0f} ms apart")

    return strike


def cut(*services: str) -> Callable[[Trial, Random], Callable[[], Stroke]]:
    """Return the fault that cuts the active engine off from services for 0.5 to 20 s."""

    def prepare(trial: Trial, chance: Random) -> Callable[[], Stroke]:
        pod, duration = trial.active(), 0.5 * 40 ** chance.random()
        pulled = [cable for service in services for cable in cables(pod.name, service)]
        return _pull(trial, pod, pulled, duration)

    return prepare


def cut_broker(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Cut the active engine off from one broker that it needs, for 0.5 to 20 s."""
    pod, duration, kafka = trial.active(), 0.5 * 40 ** chance.random(), trial.site.kafka
    topics = [*trial.plan.inputs.values(), *trial.plan.outputs.values(), trial.plan.order_log]
    topic = chance.choice([*topics, ""])
    server = kafka.leader_of(topic) if topic else kafka.coordinator_of(trial.transactional_id)
    what = f"leader of {topic}" if topic else "coordinator"
    cable = cables(pod.name, "kafka")[kafka.servers.index(server)]
    return _pull(trial, pod, [cable], duration, f", {what}")


def cut_standby(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Cut the first standby off from the broker that leads an input, then kill the active engine.

    0 to 2 s lie between the two, and what it takes until the moment is there. The cut lasts for 0.5
    to 20 s more: the one that is elected cannot read what it is to process.
    """
    pod, heir, kafka = trial.active(), trial.standbys()[0], trial.site.kafka
    topic = chance.choice(list(trial.plan.inputs.values()))
    cable = cables(heir.name, "kafka")[kafka.servers.index(kafka.leader_of(topic))]
    pause, duration = chance.uniform(0, 2), 0.5 * 40 ** chance.random()
    pid, again = pod.child(), restarted(pod)
    _proxy(trial).cut(cable)
    time.sleep(pause)

    def strike() -> Stroke:
        kill_process(pid)

        def heal() -> None:
            _proxy(trial).heal(cable)
            again()

        return lasting(duration, f"{pod.name}, {heir.name}", heal, f", {pause:.1f} s apart")

    return strike


def _pull(
    trial: Trial, pod: Pod, pulled: list[str], duration: float, detail: str = ""
) -> Callable[[], Stroke]:
    def strike() -> Stroke:
        _proxy(trial).cut(*pulled)
        return lasting(duration, pod.name, lambda: _proxy(trial).heal(*pulled), detail)

    return strike


def _cables(engine: str) -> list[str]:
    return [cable for service in SERVICES for cable in cables(engine, service)]


def _proxy(trial: Trial) -> Proxy:
    assert trial.site.proxy is not None, "this fault needs the proxy"
    return trial.site.proxy
