"""Conditions of the parts, as an ordered chain of small pure checks.

Each check looks at the facts and says whether it holds, and why. What they come to for the whole is
in `summary`: `Ready` is the first of them that does not hold.
"""

from collections.abc import Callable, Mapping

from espha.protocol.states import EngineState
from espha_operator.status import adapters
from espha_operator.status.facts import Facts, Verdict
from espha_operator.status.model_change import model_rolled_out
from espha_operator.status.reasons import Reason
from espha_operator.status.storage import CRITICAL, WARN, Room, fullest, sentence
from espha_operator.status.summary import summarise

Check = Callable[[Facts], Verdict]
_DURATIONS = (10, 30, 60, 300, 900, 3600)


def model_valid(facts: Facts) -> Verdict:
    """Check that the model can be read, and the adapters name windows that it has."""
    if isinstance(facts.model, Verdict):
        return facts.model
    also = "".join(f" {sentence}" for sentence in facts.model.notes)
    text = f"{facts.model.label} has {len(facts.model.topics)} topics.{also}"
    return Verdict(Reason.VALID, text)


def zookeeper_ready(facts: Facts) -> Verdict:
    """Check that all ZooKeeper servers take part in the quorum."""
    keeper = facts.deployment.spec.zookeeper
    if keeper.external:
        return Verdict(Reason.EXTERNAL, f"Uses {', '.join(keeper.external.servers)}.")
    if not facts.exists("zookeeper"):
        return _not_started(facts)
    if facts.serving <= keeper.replicas // 2:
        text = f"{facts.serving} of {keeper.replicas} servers serve; a majority is needed."
        return Verdict(Reason.NO_QUORUM, f"{text} No failover can happen until then.")
    if min(facts.serving, facts.set("zookeeper").ready) < keeper.replicas:
        return Verdict(
            Reason.SERVERS_MISSING, f"{facts.serving} of {keeper.replicas} servers serve."
        )
    return Verdict(Reason.SERVING, f"All {keeper.replicas} servers serve.")


def brokers_ready(facts: Facts) -> Verdict:
    """Check that all brokers are up, as far as Kubernetes can see."""
    kafka = facts.deployment.spec.kafka
    if kafka.external:
        return Verdict(Reason.EXTERNAL, f"Uses {', '.join(kafka.external.bootstrap_servers)}.")
    if not facts.exists("kafka"):
        return _not_started(facts)
    ready = facts.set("kafka").ready
    if ready < kafka.replicas:
        return Verdict(Reason.BROKERS_MISSING, f"{ready} of {kafka.replicas} brokers are ready.")
    return Verdict(Reason.SERVING, f"All {kafka.replicas} brokers are ready.")


def kafka_ready(facts: Facts) -> Verdict:
    """Check that all brokers are up, answer, and have every copy of every topic."""
    brokers = brokers_ready(facts)
    topics = facts.topics
    if not brokers.ok or topics is None:
        return brokers
    if topics.error:
        return Verdict(Reason.UNREACHABLE, topics.error)
    wanted = facts.deployment.spec.kafka.replicas
    if not facts.deployment.spec.kafka.external and topics.brokers < wanted:
        return Verdict(Reason.BROKERS_MISSING, f"{topics.brokers} of {wanted} brokers have joined.")
    if topics.under_replicated:
        listed = ", ".join(topics.under_replicated)
        return Verdict(Reason.UNDER_REPLICATED, f"Copies are missing or behind: {listed}.")
    return brokers


def topics_ready(facts: Facts) -> Verdict:
    """Check that all topics exist, with the settings of the spec."""
    topics = facts.topics
    if facts.planned is None and topics is None:
        return _not_started(facts)
    if topics is None:
        return Verdict(Reason.WAITING_FOR_KAFKA, "Topics are made when Kafka is ready.")
    if topics.error:
        return Verdict(Reason.KAFKA_UNREACHABLE, topics.error)
    if topics.wrong:
        return Verdict(Reason.WRONG_SETTINGS, " ".join(topics.wrong))
    copies = facts.deployment.spec.replication_factor
    if topics.missing and topics.brokers < copies:
        text = f"Topics need {copies} brokers, Kafka has {topics.brokers}."
        return Verdict(Reason.TOO_FEW_BROKERS, text)
    if topics.missing:
        return Verdict(Reason.MISSING, f"Not there yet: {', '.join(topics.missing)}.")
    count = len(facts.planned.topics) if facts.planned else 0
    return Verdict(Reason.MADE, f"All {count} topics exist.")


def engines_ready(facts: Facts) -> Verdict:
    """Check that all engines are ready, and one of them is active and can read its input."""
    if not facts.exists("engine"):
        return _not_started(facts)
    wanted, ready = facts.deployment.spec.engines.replicas, facts.set("engine").ready
    for one in facts.engines:
        if one.reason and one.reason.state is EngineState.REFUSED:
            text = f"{one.name} cannot run the model: {one.message}"
            return Verdict(Reason.ENGINES_REFUSE, text)
    if facts.active is None:
        return Verdict(
            Reason.NO_ACTIVE_ENGINE, f"No engine is active; {ready} of {wanted} are ready."
        )
    if ready != wanted or facts.set("engine").exist != wanted:
        return Verdict(Reason.ENGINES_MISSING, f"{ready} of {wanted} engines are ready.")
    if facts.active.held_topic:
        text = f"{facts.active.name} waits for a transaction that a producer has left open on"
        held = f"topic {facts.active.held_topic}, for {_about(facts.active.held_s)} already."
        return Verdict(Reason.INPUT_HELD, f"{text} {held}")
    return Verdict(Reason.ACTIVE, f"{facts.active.name} is active.")


def replicas_in_sync(facts: Facts) -> Verdict:
    """Check that every engine has the state that the order log stands for."""
    if not facts.has_engines:
        return _not_started(facts)
    behind = [
        f"{one.name} ({one.state}{': ' + one.message if one.message else ''})"
        for one in facts.engines
        if not one.in_sync
    ]
    if behind:
        differ = any(one.diverged and not one.in_sync for one in facts.engines)
        reason = Reason.DIVERGED if differ else Reason.BEHIND
        return Verdict(reason, f"Not in sync: {', '.join(behind)}.")
    wanted = facts.deployment.spec.engines.replicas
    if len(facts.engines) < wanted:
        return Verdict(Reason.NO_ANSWER, f"{len(facts.engines)} of {wanted} engines answer.")
    rebuilt = [
        f" {one.name} had diverged and was rebuilt ({one.diverged})."
        for one in facts.engines
        if one.diverged
    ]
    return Verdict(Reason.IN_SYNC, f"All {wanted} engines are in sync.{''.join(rebuilt)}")


def snapshots_in_reach(facts: Facts) -> Verdict:
    """Check that the topics still hold what comes after the newest snapshot."""
    topics = facts.deployment.spec.topics
    if topics.trimmed:
        return _trimmed(facts)
    if topics.retention_ms < 0:
        return Verdict(Reason.UNLIMITED, "Topics keep all records.")
    if not facts.has_engines:
        return _not_started(facts)
    kept = f"Topics keep records for {topics.retention}"
    ages = [one.snapshot_age_s for one in facts.engines if one.snapshot_age_s is not None]
    if not ages:
        text = f"{kept}, and no engine has a snapshot: older state could not be rebuilt."
        return Verdict(Reason.NO_SNAPSHOT, text)
    if min(ages) * 1000 > topics.retention_ms:
        text = f"{kept}, and the newest snapshot is older:"
        return Verdict(Reason.TOO_OLD, f"{text} an engine that starts again has no way back.")
    return Verdict(Reason.IN_REACH, f"{kept}, longer than back to the newest snapshot.")


def _trimmed(facts: Facts) -> Verdict:
    held = facts.disks.trim_held if facts.disks else ""
    text = "What neither snapshots nor input adapters need is deleted from the topics."
    return Verdict(Reason.TRIMMED, f"{text} Not now: {held}" if held else text)


def may_start(facts: Facts, component: str) -> bool:
    """Tell whether kept volumes fit servers of ours, or these have started already."""
    return facts.exists(component) or facts.disks is None or component not in facts.disks.foreign


def volumes_fit(facts: Facts) -> Verdict:
    """Check that volumes are as large as the spec says."""
    disks = facts.disks
    if disks is None:
        return _not_started(facts)
    unfit = [why for one, why in disks.foreign.items() if not may_start(facts, one)]
    if unfit:
        return Verdict(Reason.FOREIGN_VOLUMES, " ".join(unfit))
    if disks.refused:
        return Verdict(Reason.CANNOT_GROW, disks.refused)
    if disks.growing:
        text = f"To be larger: {', '.join(disks.growing)}."
        pods = f" File systems grow when pods start again: {', '.join(disks.pending)}."
        return Verdict(Reason.GROWING, text + pods if disks.pending else text)
    return Verdict(Reason.AS_WANTED, "All volumes are as large as the spec says.")


def storage_low(facts: Facts) -> Verdict:
    """Check whether a volume is nearly full; this one is true when something is wrong."""
    rooms = [*_rooms_of_engines(facts), *(facts.disks.rooms if facts.disks else ())]
    full = fullest(rooms)
    if not full:
        return Verdict(Reason.ENOUGH, f"No volume of {len(rooms)} is used to {WARN:.0%}.")
    if full[0].share >= CRITICAL:
        text = f"Nearly full: {sentence(full)}. Enlarge the storage, or keep records for less time."
        return Verdict(Reason.CRITICAL, text)
    return Verdict(Reason.LOW, f"Volumes fill up: {sentence(full)}.")


def _rooms_of_engines(facts: Facts) -> list[Room]:
    return [
        Room(one.name, one.volume_bytes, one.volume_bytes - (one.volume_free_bytes or 0))
        for one in facts.engines
        if one.volume_bytes
    ]


def adapters_ready(facts: Facts) -> Verdict:
    """Check that all pods of all adapters are ready; say what they wait for."""
    wanted = {one.label: one.pods for one in facts.deployment.spec.adapters.every}
    said = (*adapters.trouble(facts), *(facts.planned.not_run if facts.planned else ()))
    also = "".join(f" {sentence}" for sentence in said)
    if not wanted:
        return Verdict(Reason.NO_ADAPTERS, f"The deployment has no adapters.{also}")
    if not any(facts.exists(name) for name in wanted):
        return _not_started(facts)
    missing = [
        f"{name} ({facts.set(name).ready} of {count})"
        for name, count in wanted.items()
        if facts.set(name).ready < count
    ]
    if missing:
        return Verdict(Reason.ADAPTERS_MISSING, f"Not ready: {', '.join(missing)}.{also}")
    return Verdict(Reason.RUNNING, f"All {len(wanted)} adapters run.{also}")


CHAIN: tuple[tuple[str, Check], ...] = (
    ("ModelValid", model_valid),
    ("ZooKeeperReady", zookeeper_ready),
    ("KafkaReady", kafka_ready),
    ("TopicsReady", topics_ready),
    ("ModelRolledOut", model_rolled_out),
    ("EnginesReady", engines_ready),
    ("ReplicasInSync", replicas_in_sync),
    ("SnapshotsInReach", snapshots_in_reach),
    ("VolumesFit", volumes_fit),
    ("AdaptersReady", adapters_ready),
)


def judge(facts: Facts, known: Mapping[str, Verdict] = {}) -> dict[str, Verdict]:
    """Return all verdicts in order, `Ready` last.

    Args:
        facts: what is seen.
        known: verdicts on parts of which the facts say nothing yet, by condition.
    """
    parts = {name: known.get(name) or check(facts) for name, check in CHAIN}
    low = known.get("StorageLow") or storage_low(facts)
    return {**parts, "StorageLow": low, **summarise(facts, parts)}


def _about(seconds: float) -> str:
    """Return a duration that seldom changes as it grows: each change is a write of the status."""
    known = max((one for one in _DURATIONS if one <= seconds), default=0)
    return f"more than {known} s"


def _not_started(facts: Facts) -> Verdict:
    if facts.planned is None:
        return Verdict(Reason.NOT_STARTED, "Nothing starts before the model is valid.")
    return Verdict(Reason.WAITING, "Starts when everything that it needs is ready.")
