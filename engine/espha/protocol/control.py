"""The talk of a supervisor with what it starts: its child, and an engine's fork server.

A child reports `ChildStatus` lines on the descriptor that `STATUS_FD_VARIABLE` names, and hears
`Instruction` lines on its standard input. A fork server has a socket pair, whose descriptor
`FORK_SERVER_FD_VARIABLE` names: a request is `START` with two descriptors (the engine's standard
input, and what it reports its status on), the answers are `Forked` and `Ended`.
"""

from espha.protocol.deaths import Deaths
from espha.protocol.message import Message
from espha.protocol.model_change import ModelRequest
from espha.protocol.states import Role

STATUS_FD_VARIABLE = "ESPHA_STATUS_FD"
FORK_SERVER_FD_VARIABLE = "ESPHA_FORK_SERVER_FD"
START = b"start"
PROCESS_NAME = "espha-engine"
"""What `ps` shows for the process that a fork server has forked."""


class Instruction(Message):
    """What a supervisor tells its child; what is not named stays as it is."""

    role: Role | None = None
    """Publish from now on; or finish what is begun, report `standby`, and follow."""
    snapshot: bool = False
    """Write a snapshot now."""
    deaths: Deaths | None = None
    """What is known of engines that have died in the middle of a batch."""
    snapshots: bool | None = None
    """Be the one that writes them from time to time, or no more."""
    heir: str = ""
    """With the role `standby`: the engine that goes on, which the order log is to name."""
    model: ModelRequest | None = None
    """What is to become of the next model."""
    follow: bool = False
    """The order log has left the model that this engine was given: run the log's own."""
    prove: bool = False
    """Commit something at once, by which one that was deposed learns it."""


class Forked(Message):
    """An engine process runs."""

    pid: int


class Ended(Message):
    """An engine process has ended."""

    code: int
    """As in `subprocess`: -9 by SIGKILL."""
