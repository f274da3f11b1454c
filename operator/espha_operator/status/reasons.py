"""Reasons of conditions: a closed list, in which each entry says what it means, and if all is well.

Users, alerts and tests know them by name: `kubectl get espha -o yaml`, `status.conditions`.
"""

from typing import Self

from espha.protocol.states import Explained


class Reason(Explained):
    """Why a condition holds, or does not.

    Attributes:
        sentence: what it means.
        holds: whether the condition holds.
    """

    holds: bool

    def __new__(cls, value: str, sentence: str, holds: bool = False) -> Self:
        """Make a member of its value, its sentence, and whether the condition holds."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence, member.holds = sentence, holds
        return member

    INVALID_SPEC = "InvalidSpec", "The spec cannot be read."
    INVALID_MODEL = "InvalidModel", "The model cannot be read."
    UNKNOWN_WINDOW = "UnknownWindow", "An adapter names a window that the model does not have."
    NO_CONFIG_MAP = "NoConfigMap", "The ConfigMap with the model does not exist."
    NO_KEY = "NoKey", "The ConfigMap does not have the key that the model is said to be at."
    VALID = "Valid", "The model can be read, and the adapters fit it.", True

    NOT_STARTED = "NotStarted", "Nothing starts before the model is valid."
    WAITING = "Waiting", "It starts when everything that it needs is ready."
    EXTERNAL = "External", "The servers are not the operator's.", True
    NO_QUORUM = "NoQuorum", "ZooKeeper has no majority; no failover can happen."
    SERVERS_MISSING = "ServersMissing", "Some ZooKeeper servers do not serve."
    SERVING = "Serving", "All servers serve.", True

    BROKERS_MISSING = "BrokersMissing", "Some brokers are not ready or have not joined."
    UNREACHABLE = "Unreachable", "Kafka does not answer the operator."
    UNDER_REPLICATED = "UnderReplicated", "Some topics have fewer live copies than they should."

    WAITING_FOR_KAFKA = "WaitingForKafka", "Topics are made when Kafka is ready."
    KAFKA_UNREACHABLE = "KafkaUnreachable", "Kafka does not answer the operator."
    WRONG_SETTINGS = "WrongSettings", "A topic has other settings than the spec says."
    TOO_FEW_BROKERS = "TooFewBrokers", "Topics need more copies than there are brokers."
    MISSING = "Missing", "Some topics do not exist yet."
    MADE = "Made", "All topics exist.", True

    NO_ACTIVE_ENGINE = "NoActiveEngine", "No engine is active."
    ENGINES_MISSING = "EnginesMissing", "Some engines are not ready."
    INPUT_HELD = "InputHeld", "A producer has left a transaction open on an input topic."
    ACTIVE = "Active", "All engines are ready, and one is active.", True

    DIVERGED = "Diverged", "An engine computed other outputs than the active one."
    BEHIND = "Behind", "An engine is not in sync."
    NO_ANSWER = "NoAnswer", "An engine does not answer the operator."
    IN_SYNC = "InSync", "All engines are in sync.", True

    UNLIMITED = "Unlimited", "Topics keep all records.", True
    NO_SNAPSHOT = "NoSnapshot", "Topics forget, and no engine has a snapshot."
    TOO_OLD = "TooOld", "Topics forget sooner than back to the newest snapshot."
    IN_REACH = "InReach", "Topics reach back to the newest snapshot.", True

    ADAPTERS_MISSING = "AdaptersMissing", "Some pods of adapters are not ready."
    NO_ADAPTERS = "None", "The deployment has no adapters.", True
    RUNNING = "Running", "All adapters run.", True

    APPLY_FAILED = "ApplyFailed", "The API server refuses an object."
    ALL_READY = "AllReady", "All conditions hold.", True
