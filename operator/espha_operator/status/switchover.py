"""What a request for a switchover comes to, given what runs. Pure."""

from dataclasses import dataclass
from typing import Literal

from espha_operator.status.facts import Facts

ANY = "any"


@dataclass(frozen=True)
class Decision:
    """The next thing to do about a request.

    Attributes:
        action: wait for an active engine; name the engine for a request that takes any; ask the
            active engine to hand over; or the request is done or refused, and goes.
        to: the engine that is to be active.
        message: what happened, for people; empty while it goes on.
        locked: the active engine knows another token than the operator: one that has been changed
            since its pod began.
    """

    action: Literal["wait", "name", "ask", "done", "refused"]
    to: str = ""
    message: str = ""
    locked: bool = False


def decide(request: str, facts: Facts) -> Decision:
    """Decide what to do about a request: the name of an engine's pod, or `any`.

    1. Without an active engine there is nobody to ask: wait.
    2. `any` is given a name first. A request with a name can be made again and again, until it
       has come true; `any` would go round.
    3. A request for the active engine is fulfilled.
    4. An engine that is unknown or not in sync cannot be active.
    5. Else ask.
    """
    active = facts.active
    if active is None:
        return Decision("wait")
    ready = {one.name: one.in_sync for one in facts.engines if one.name != active.name}
    if request == ANY:
        standby = min((name for name, in_sync in ready.items() if in_sync), default=None)
        if standby is None:
            return Decision("refused", message=f"Besides {active.name} no engine is in sync.")
        return Decision("name", standby)
    if request == active.name:
        return Decision("done", request, f"{request} is active.")
    if request not in ready:
        listed = ", ".join([*sorted(ready), ANY])
        return Decision(
            "refused", request, f'No engine "{request}" answers; possible are: {listed}.'
        )
    if not ready[request]:
        return Decision("refused", request, f"{request} is not in sync.")
    return Decision("ask", request)
