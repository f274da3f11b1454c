"""What a wish for a switchover comes to, given what runs. Pure."""

from dataclasses import dataclass
from typing import Literal

from espha_operator.status.facts import Facts

ANY = "any"


@dataclass(frozen=True)
class Decision:
    """The next thing to do about a wish.

    Attributes:
        action: wait for an active engine; name the engine for a wish that takes any; ask the active
            engine to hand over; or the wish is done or refused, and goes.
        to: the engine that is to be active.
        message: what happened, for people; empty while it goes on.
    """

    action: Literal["wait", "name", "ask", "done", "refused"]
    to: str = ""
    message: str = ""


def decide(wish: str, facts: Facts) -> Decision:
    """What to do about a wish: the name of an engine's pod, or `any`.

    1. Without an active engine there is nobody to ask: wait.
    2. `any` is given a name first. A wish with a name can be asked for again and again, until it
       has come true; `any` would go round.
    3. A wish for the active engine has come true.
    4. An engine that is unknown or not in sync cannot be active.
    5. Else ask.
    """
    active = facts.active
    if active is None:
        return Decision("wait")
    ready = {one.name: one.in_sync for one in facts.engines if one.name != active.name}
    if wish == ANY:
        standby = min((name for name, in_sync in ready.items() if in_sync), default=None)
        if standby is None:
            return Decision("refused", message=f"Besides {active.name} no engine is in sync.")
        return Decision("name", standby)
    if wish == active.name:
        return Decision("done", wish, f"{wish} is active.")
    if wish not in ready:
        listed = ", ".join([*sorted(ready), ANY])
        return Decision("refused", wish, f'No engine "{wish}" answers; possible are: {listed}.')
    if not ready[wish]:
        return Decision("refused", wish, f"{wish} is not in sync.")
    return Decision("ask", wish)
