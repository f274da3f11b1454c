"""Asking a supervisor to hand over, and its answer."""

from pydantic import Field, StrictStr

from espha.protocol.message import Message
from espha.protocol.states import SwitchoverReason

PATH = "/switchover"


class SwitchoverRequest(Message):
    """Body of `POST /switchover`."""

    to: StrictStr | None = Field(
        None, description="The engine that is to be active; null: the next in line."
    )


class SwitchoverAnswer(Message):
    """What a supervisor says to somebody who asks it to hand over."""

    reason: SwitchoverReason = Field(description="What comes of it, by name.")
    message: str = Field(description="The same as a sentence.")
    active: str | None = Field(None, description="The active engine, where it is known.")

    @property
    def code(self) -> int:
        """The code of the HTTP answer."""
        return self.reason.code
