"""Kafka brokers as espha sets them: by the operator, by `espha local` and in tests alike.

A broker's death stops the commits of all until it is shut out, whatever it led: each write waits
for every replica in sync. Who leads must then be found anew, and, when it was the active
controller, a controller first. One broker, the `LEADER`, leads all topics and coordinates all
transactions; the controllers elect it only when no other one stands. So no death costs both, and
commits need fewer hops.
"""

from espha.protocol.sizes import MESSAGE_BYTES

LEADER = 0
"""The broker that leads whatever it can."""
TRANSACTION_TOPIC = "__transaction_state"
TRANSACTION_PARTITIONS = 1
"""As there is one writer for each project and adapter, one is enough. The others ask for all that a
broker leads with each fetch: four more here, and of offsets, cost it an eighth of its time."""

_OFFSETS_PARTITIONS = 1
_SESSION_MS = 1200
_HEARTBEAT_MS = 300
_CONNECT_MS = 500
_QUORUM_FETCH_MS = 1200
_QUORUM_ELECTION_MS = 300
_QUORUM_SEGMENT = 16 << 20
_TRANSACTION_SEGMENT = 1 << 20
_LEADERS_FETCH_MS, _LEADERS_ELECTION_MS = 1000, 800


def broker_settings(brokers: int, copies: int, in_sync: int) -> dict[str, str]:
    """Return the settings of all brokers; who they are and where they listen is not in them.

    Args:
        brokers: how many there are.
        copies: of each partition.
        in_sync: how many of these must have a record before it counts as written.
    """
    settings: dict[str, object] = {
        "auto.create.topics.enable": "false",
        "num.partitions": 1,
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": _OFFSETS_PARTITIONS,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": TRANSACTION_PARTITIONS,
        "transaction.state.log.segment.bytes": _TRANSACTION_SEGMENT,
        "message.max.bytes": MESSAGE_BYTES,
        "group.initial.rebalance.delay.ms": 0,
        # Whether the transaction before is complete a leader asks again after 1 ms, not after 20; a
        # client that hears nothing for 5 ms asks by itself.
        "add.partitions.to.txn.retry.backoff.ms": 1,
        "add.partitions.to.txn.retry.backoff.max.ms": 5,
        # The death of a broker costs about so much; one that gets no processor time for as long is
        # taken for dead. A broker waits for the answer to a heartbeat until the next one is due.
        "broker.session.timeout.ms": _SESSION_MS,
        "broker.heartbeat.interval.ms": _HEARTBEAT_MS,
        # Where the controller is dead, too, the leader drops who lags as soon as there is another.
        # The new controller alone would first give every broker a whole session.
        "replica.lag.time.max.ms": _SESSION_MS,
        "replica.fetch.backoff.ms": 50,
        # In Kubernetes names give the address of a pod that is gone for some seconds, and nobody
        # answers there. Brokers would wait 10 s, then 20: the one that ends transactions, too.
        "socket.connection.setup.timeout.ms": _CONNECT_MS,
        "socket.connection.setup.timeout.max.ms": 2 * _CONNECT_MS,
        "controller.quorum.fetch.timeout.ms": _QUORUM_FETCH_MS,
        "controller.quorum.election.timeout.ms": _QUORUM_ELECTION_MS,
        "controller.quorum.election.backoff.max.ms": 100,
        # Leaders go back to where they belong soon after that broker has.
        "leader.imbalance.check.interval.seconds": 15,
        # Kafka's own 128 MiB are half of the heap, and full collections stop the broker for 100 ms
        # then. This is enough for 600,000 keys; topics with more are compacted in several passes.
        "log.cleaner.dedupe.buffer.size": 16 << 20,
        # What is deleted leaves the disk soon, not after five minutes and one.
        "log.retention.check.interval.ms": 30_000,
        "log.segment.delete.delay.ms": 10_000,
        # The controllers' own log: snapshots and segments of it would take 200 MiB and more.
        "metadata.log.segment.bytes": _QUORUM_SEGMENT,
        "metadata.max.retention.bytes": 2 * _QUORUM_SEGMENT,
        "metadata.log.max.record.bytes.between.snapshots": _QUORUM_SEGMENT // 2,
    }
    if brokers == 1:
        del settings["replica.lag.time.max.ms"]
    return {name: str(value) for name, value in settings.items()}


def own_settings(broker: int, brokers: int) -> dict[str, str]:
    """Return what one broker has set otherwise than the others."""
    if broker != LEADER or brokers == 1:
        return {}
    return {
        # It misses a controller first, when the others still believe in that one and refuse to be
        # led by anybody else. Then it is slow to ask again, and they ask it for its vote.
        "controller.quorum.fetch.timeout.ms": str(_LEADERS_FETCH_MS),
        "controller.quorum.election.timeout.ms": str(_LEADERS_ELECTION_MS),
    }


def replicas(brokers: int, copies: int) -> list[int]:
    """Return the brokers that hold a partition; the first one leads it when it can."""
    others = [broker for broker in range(brokers) if broker != LEADER]
    return [LEADER, *others][:copies]


def transaction_topic(in_sync: int) -> dict[str, str]:
    """Return the settings with which Kafka itself would make the topic of transactions, or less."""
    return {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(in_sync),
        # A new coordinator reads all that is not compacted before it does anything. Kafka's own 100
        # MiB would stay for days; a commit writes some 400 bytes. Smaller ones Kafka does not take.
        "segment.bytes": str(_TRANSACTION_SEGMENT),
        "unclean.leader.election.enable": "false",
    }
