"""Asking a supervisor for a change of the model; it answers as it does to a switchover."""

from enum import StrEnum

from pydantic import Field, StrictStr

from espha.protocol.message import Message

PATH = "/model"
"""`POST` asks for a change; `GET /model/DIGEST` returns a model's XML."""


class ModelAction(StrEnum):
    """What is to be done."""

    SHADOW = "shadow"
    SWITCH = "switch"
    END = "end"


class ModelRequest(Message):
    """Body of `POST /model`."""

    action: ModelAction = Field(
        description="`shadow`: note in the order log that the model begins; `switch`: go over to "
        "it, to an engine that runs it in step; `end`: it is not the next one any more."
    )
    model: StrictStr = Field(description="Digest of the model.")
    since: int | None = Field(
        None,
        description="With `shadow`: order record behind which the model began once with empty "
        "state, where somebody has its state; null: it begins now.",
    )
    blind: bool = Field(
        False,
        description="With `switch`: also where no engine runs the model yet, and none stands by "
        "that could; it begins with empty state then.",
    )
    heir: StrictStr = Field(
        "", description="With `switch`: the engine that goes on; empty: the supervisor finds one."
    )
