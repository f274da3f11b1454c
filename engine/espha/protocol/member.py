"""What stands in a znode of the election."""

from pydantic import Field

from espha.protocol.message import Message


class MemberInfo(Message):
    """What a znode says of its supervisor, so that those behind it can watch over it."""

    name: str = Field(description="The replica's name.")
    address: str = Field(
        "", description="Where its heartbeat server listens, `host:port`; empty: nowhere."
    )
    lifeline: str = Field(
        "", description="Where its child accepts connections that end with it; empty: nowhere."
    )
    session: int = Field(0, description="ZooKeeper's session id, as a number.")
    password: str = Field("", description="The session's password, as hex digits.", repr=False)
