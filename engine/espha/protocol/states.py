"""States, roles and reasons: closed lists, in which each entry carries its sentence."""

from enum import IntEnum, StrEnum
from typing import Self


class ExitCode(IntEnum):
    """How a supervised process ends by itself."""

    FAILED = 1
    """It cannot go on; the next life may."""
    REFUSED = 2
    """Somebody has to change its model or its configuration."""
    UNKNOWN = 3
    """It does not know why it fails: nothing that it used is used again."""
    ORPHANED = 75
    """Its supervisor is gone."""


class Explained(StrEnum):
    """Names with a sentence for people each; the value is what goes over the wire."""

    sentence: str

    def __new__(cls, value: str, sentence: str) -> Self:
        """Make a member of its value and its sentence."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member


class Role(StrEnum):
    """Which of the replicas publishes."""

    ACTIVE = "active"
    STANDBY = "standby"


class EngineState(Explained):
    """State of an engine, or of an adapter, in one life of its process.

    Attributes:
        sentence: what it means.
        terminal: whether the process ends in it; the supervisor then starts the next one.
    """

    terminal: bool

    def __new__(cls, value: str, sentence: str, terminal: bool = False) -> Self:
        """Make a member of its value, its sentence, and whether it is the last of a life."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence, member.terminal = sentence, terminal
        return member

    STARTING = "starting", "The process starts: it reads its model and opens its connections."
    REPLAYING = "replaying", "The engine rebuilds its state from a snapshot and the order log."
    STANDBY = "standby", "The replica is in sync and can take over."
    ACTIVE = "active", "The replica is elected and publishes."
    SHADOW = (
        "shadow",
        "The engine runs the next model, in step with the order log; it cannot take over.",
    )
    LEAVING = (
        "leaving",
        "The order log has gone over to another model; the next life runs it.",
        True,
    )
    DOWN = "down", "The process has ended, and the next one has not been started yet."
    REFUSED = "refused", "The model or the configuration cannot be used as it is.", True
    FAILED = "failed", "The process cannot go on; the message says why.", True
    DIVERGED = "diverged", "The engine computed other outputs than the active one.", True


class Step(Explained):
    """What a child's main loop is doing.

    Attributes:
        sentence: what it means.
        computes: whether Spark or this machine's processor does it; else it waits for Kafka, or
            for somebody else.
    """

    computes: bool

    def __new__(cls, value: str, sentence: str, computes: bool = False) -> Self:
        """Make a member of its value, its sentence, and what it waits for."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence, member.computes = sentence, computes
        return member

    STARTING = "starting", "Starts Spark, opens connections, restores a snapshot.", True
    WAITING = "waiting", "Waits for input, or for an order record."
    RUNNING = "running", "Runs a batch.", True
    COMMITTING = "committing", "Commits a batch."
    FENCING = "fencing", "Shuts out those who were active before."
    READING_BACK = "reading-back", "Reads the order log to its end, in a take-over or at a start."
    READING = "reading", "Reads the input that an order record names."
    REPLAYING = "replaying", "Runs batches that another engine has committed.", True
    SNAPSHOT = "snapshot", "Takes the state for a snapshot.", True
    SOURCE = "source", "An input adapter is at its source: it reads files, or asks a server."
    TARGET = "target", "An output adapter is at its target: it writes a file, or asks a server."


class EndReason(Explained):
    """Why a supervised process has ended itself.

    Attributes:
        sentence: what it means.
        state: the state in which the process ends.
        code: the exit code with which it ends.
    """

    state: EngineState
    code: ExitCode

    def __new__(cls, value: str, sentence: str, state: EngineState, code: ExitCode) -> Self:
        """Make a member of its value, its sentence, and how the process ends."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence, member.state, member.code = sentence, state, code
        return member

    MODEL = "model", "The model cannot be read or run.", EngineState.REFUSED, ExitCode.REFUSED
    CONFIGURATION = (
        "configuration",
        "The adapter cannot start as it is configured.",
        EngineState.REFUSED,
        ExitCode.REFUSED,
    )
    DIVERGED = (
        "diverged",
        "Input, outputs or state are not those of an order record; the state is rebuilt.",
        EngineState.DIVERGED,
        ExitCode.FAILED,
    )
    TOPIC = (
        "topic",
        "A topic cannot be read as needed: records are gone, or are not as the order log says.",
        EngineState.FAILED,
        ExitCode.FAILED,
    )
    FENCED = (
        "fenced",
        "A newer replica has taken over and shut this one out.",
        EngineState.FAILED,
        ExitCode.FAILED,
    )
    COMMIT = (
        "commit",
        "The outcome of a commit is unknown; only reading back can tell.",
        EngineState.FAILED,
        ExitCode.FAILED,
    )
    SWITCHED = (
        "switched",
        "The order log has gone over to another model, which the next life runs.",
        EngineState.LEAVING,
        ExitCode.FAILED,
    )
    SHADOW = (
        "shadow",
        "The next model cannot be run beside the one that leads; the next life tries again.",
        EngineState.FAILED,
        ExitCode.FAILED,
    )
    RECORD = (
        "record",
        "The model fails on an input record; if it does so again, that record is set aside.",
        EngineState.FAILED,
        ExitCode.FAILED,
    )
    WORKER = (
        "worker",
        "Spark's Python worker, which holds the state, has ended; the JVM serves the next one.",
        EngineState.FAILED,
        ExitCode.FAILED,
    )
    UNKNOWN = (
        "unknown",
        "An unexpected error, for which Spark may be to blame; the log has the traceback.",
        EngineState.FAILED,
        ExitCode.UNKNOWN,
    )


class KillReason(Explained):
    """Why a supervisor kills its child."""

    SILENT = "silent", "The child has not reported for longer than the failure timeout."
    CUT_OFF = "cut-off", "Kafka, or one of its brokers, answers other engines but not this one."
    STOPPED = "stopped", "A process of the child (the JVM, a worker) is frozen."
    STUCK = "stuck", "The child has not got on with what it does for much longer than usual."


class SwitchoverReason(Explained):
    """What comes of asking a supervisor to hand over.

    Attributes:
        sentence: what it means.
        code: the code of the HTTP answer. 200: it is as asked for; 202: begun; 4xx: impossible;
            503: not now.
    """

    code: int

    def __new__(cls, value: str, sentence: str, code: int) -> Self:
        """Make a member of its value, its sentence and its HTTP code."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence, member.code = sentence, code
        return member

    BEGUN = "begun", "The engine finishes its batch and hands over.", 202
    UNDER_WAY = "under-way", "The engine is handing over already.", 202
    ALREADY_ACTIVE = "already-active", "The engine asked for is active already.", 200
    NOT_AN_ENGINE = "not-an-engine", "Only engines hand over.", 409
    NOT_ACTIVE = "not-active", "The engine that was asked is not active.", 409
    NO_CANDIDATE = "no-candidate", "No other engine stands for election.", 409
    NOT_A_CANDIDATE = "not-a-candidate", "The engine asked for does not stand for election.", 409
    NOT_IN_STEP = "not-in-step", "No engine runs that model in step with the order log.", 409
    OTHER_SHADOW = "other-shadow", "Another model is the next one.", 409
    NO_ELECTION = "no-election", "The replica does not stand for election.", 409
    NOT_OFFERED = "not-offered", "The supervisor does not know how to hand over.", 404
    NOT_RUNNING = "not-running", "The engine does not run.", 503
    ZOOKEEPER = "zookeeper", "ZooKeeper does not answer.", 503
    UNREACHABLE = "unreachable", "The supervisor does not answer.", 503
    MALFORMED = "malformed", "The request is not as it must be.", 400
    FORBIDDEN = "forbidden", "The request comes from elsewhere and lacks the token.", 403
