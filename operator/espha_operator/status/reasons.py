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
        stalls: whether nothing gets better before somebody acts; makes `Stalled` true.
    """

    holds: bool
    stalls: bool

    def __new__(cls, value: str, sentence: str, holds: bool = False, stalls: bool = False) -> Self:
        """Make a member of its value, its sentence, whether the condition holds, and stalls."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence, member.holds, member.stalls = sentence, holds, stalls
        return member

    INVALID_SPEC = "InvalidSpec", "The spec cannot be read.", False, True
    INVALID_MODEL = "InvalidModel", "The model cannot be read.", False, True
    UNKNOWN_WINDOW = (
        "UnknownWindow",
        "An adapter names a window that the model does not have.",
        False,
        True,
    )
    UNFIT_CONNECTOR = (
        "UnfitConnector",
        "A connector of the model is to become an adapter, and cannot.",
        False,
        True,
    )
    NO_CONFIG_MAP = "NoConfigMap", "The ConfigMap with the model does not exist.", False, True
    NO_KEY = (
        "NoKey",
        "The ConfigMap does not have the key that the model is said to be at.",
        False,
        True,
    )
    CONFLICT = (
        "Conflict",
        "Another deployment, which came first, writes the same topics on the same Kafka.",
        False,
        True,
    )
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
    WRONG_SETTINGS = "WrongSettings", "A topic has other settings than the spec says.", False, True
    TOO_FEW_BROKERS = "TooFewBrokers", "Topics need more copies than there are brokers."
    MISSING = "Missing", "Some topics do not exist yet."
    MADE = "Made", "All topics exist.", True

    UNKNOWN_VERSION = (
        "UnknownVersion",
        "There is no earlier model that a roll-back could mean.",
        False,
        True,
    )
    NO_SHADOW = "NoShadow", "No engine has been given the new model yet."
    IN_SHADOW = "InShadow", "An engine catches up with the new model, in the shadow."
    SHADOW_FAILED = (
        "ShadowFailed",
        "The new model cannot be run, or refuses all its input; the old one leads.",
        False,
        True,
    )
    SWITCHING = "Switching", "The new model is in step, and the order log goes over to it."
    FOLLOWING = "Following", "The new model leads, and the other engines go over to it."
    ROLLED_OUT = "RolledOut", "All engines run the model.", True

    NO_ACTIVE_ENGINE = "NoActiveEngine", "No engine is active."
    ENGINES_REFUSE = "EnginesRefuse", "An engine cannot use the model as it is.", False, True
    ENGINES_MISSING = "EnginesMissing", "Some engines are not ready."
    INPUT_HELD = "InputHeld", "A producer has left a transaction open on an input topic."
    ACTIVE = "Active", "All engines are ready, and one is active.", True

    DIVERGED = "Diverged", "An engine computed other outputs than the active one."
    BEHIND = "Behind", "An engine is not in sync."
    NO_ANSWER = "NoAnswer", "An engine does not answer the operator."
    IN_SYNC = "InSync", "All engines are in sync.", True

    TRIMMED = "Trimmed", "What no snapshot needs is deleted from the topics.", True
    UNLIMITED = "Unlimited", "Topics keep all records.", True
    NO_SNAPSHOT = "NoSnapshot", "Topics forget, and no engine has a snapshot."
    TOO_OLD = "TooOld", "Topics forget sooner than back to the newest snapshot."
    IN_REACH = "InReach", "Topics reach back to the newest snapshot.", True

    AS_WANTED = "AsWanted", "All volumes are as large as the spec says.", True
    GROWING = "Growing", "Volumes are being made larger.", True
    CANNOT_GROW = "CannotGrow", "Volumes that are to be larger cannot grow.", False, True
    FOREIGN_VOLUMES = (
        "ForeignVolumes",
        "Kept volumes belong to another number of servers.",
        False,
        True,
    )

    CRITICAL = "Critical", "A volume is used to more than 90 %.", True
    LOW = "Low", "A volume is used to more than 80 %.", True
    ENOUGH = "Enough", "No volume is nearly full."

    ADAPTERS_MISSING = "AdaptersMissing", "Some pods of adapters are not ready."
    NO_ADAPTERS = "None", "The deployment has no adapters.", True
    RUNNING = "Running", "All adapters run.", True

    COMMITTING = "Committing", "An engine is active and commits.", True
    NOT_COMMITTING = "NotCommitting", "An engine is active, but does not get on."

    STARTING = "Starting", "Something that is wanted has not come up yet.", True
    ROLLING_OUT = "RollingOut", "Pods are brought to what is wanted now.", True
    COMPLETE = "Complete", "All that is wanted now has come up since it was asked for."

    MOVING = "Moving", "Nothing waits for anybody."

    CURRENT = "Current", "Pods are made of what this operator offers.", True
    KEPT_BY_POLICY = "KeptByPolicy", "The image policy keeps what an older operator has made."
    WAITS_FOR_TURN = "WaitsForTurn", "Another deployment rolls out, or has just done so."
    WEBHOOK_SERVES = "WebhookServes", "Models are checked when they are applied.", True
    WEBHOOK_FAILS = "WebhookFails", "Models may not be checked when they are applied."

    APPLY_FAILED = "ApplyFailed", "The API server refuses an object.", False, True
    RECONCILE_FAILED = "ReconcileFailed", "The operator itself fails on it.", False, True

    PAUSED = "Paused", "An annotation keeps the operator from changing anything.", True
    NOT_PAUSED = "NotPaused", "The operator does what is wanted."

    UNKNOWN_FIELDS = "UnknownFields", "The operator ignores fields that it does not know."
    UNDERSTOOD = "Understood", "The operator knows all fields of the spec.", True
    ALL_READY = "AllReady", "All conditions hold.", True
