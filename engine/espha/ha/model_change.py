"""A change of the model, as the supervisor of the active engine sees it.

It is asked (`POST /model`) to let the next model begin, to go over to it, or to end it; it looks
whether that can be, and tells its child. The change itself stands in the order log.
"""

from collections.abc import Callable, Sequence

from espha.ha.child import Child
from espha.protocol.http import NoAnswerError, ask_status
from espha.protocol.model_change import ModelAction, ModelRequest
from espha.protocol.states import EngineState, SwitchoverReason
from espha.protocol.status import ReplicaStatus
from espha.protocol.switchover import SwitchoverAnswer

_PEER_S = 1.0


class ModelChange:
    """The supervisor's part, for one life of its child."""

    def __init__(
        self,
        child: Child,
        peers: Callable[[], Sequence[str]],
        others: Callable[[], Sequence[str]],
    ) -> None:
        """Tell `child` what is asked for.

        Args:
            child: an engine.
            peers: returns the addresses of all replicas' supervisors.
            others: returns the names of the other engines that stand for election.
        """
        self._child, self._peers, self._others = child, peers, others

    def ask(self, status: ReplicaStatus, request: ModelRequest) -> SwitchoverAnswer:
        """Begin what is asked for, or say why not."""
        engine = status.engine
        if engine is None:
            return _answer(SwitchoverReason.NOT_AN_ENGINE, "only engines run a model")
        active = engine.active or None
        if status.state is not EngineState.ACTIVE:
            said = f"{status.name} is not active"
            return _answer(SwitchoverReason.NOT_ACTIVE, said, active)
        if request.model == engine.log_model:
            said = f"the order log is of model {request.model[:12]} already"
            return _answer(SwitchoverReason.ALREADY_ACTIVE, said, active)
        if request.action is ModelAction.SHADOW and engine.shadow not in ("", request.model):
            said = f"model {engine.shadow[:12]} is the next one; it has to be ended first"
            return _answer(SwitchoverReason.OTHER_SHADOW, said, active)
        if request.action is ModelAction.SWITCH:
            heir = request.heir or self._heir(request.model)
            refusal = "" if heir else self._refusal(request)
            if refusal:
                return _answer(SwitchoverReason.NOT_IN_STEP, refusal, active)
            request = request.model_copy(update={"heir": heir})
        self._child.change_model(request)
        said = f"{status.name} is told: {request.action} model {request.model[:12]}"
        return _answer(SwitchoverReason.BEGUN, said, active)

    def _heir(self, model: str) -> str:
        """Return an engine that runs a model in the shadow, in step; empty: there is none."""
        for address in self._peers():
            try:
                status = ask_status(address, _PEER_S)
            except NoAnswerError:
                continue
            engine = status.engine
            if status.state is EngineState.SHADOW and engine and engine.model_digest == model:
                return status.name
        return ""

    def _refusal(self, request: ModelRequest) -> str:
        if not request.blind:
            return f"no engine runs model {request.model[:12]} in step with the order log"
        others = self._others()
        if others:
            return f"{', '.join(others)} can run it in the shadow first"
        return ""


def _answer(reason: SwitchoverReason, message: str, active: str | None = None) -> SwitchoverAnswer:
    return SwitchoverAnswer(reason=reason, message=message, active=active)
