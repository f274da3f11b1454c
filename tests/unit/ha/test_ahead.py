"""Those who stand before one in the election, and who leads when they have ended."""

from espha.ha.ahead import Ahead
from espha.ha.heartbeat import End
from espha.protocol.member import MemberInfo


def test_who_might_not_lead_when_those_before_it_ended_is_asked_again() -> None:
    """It was frozen then, and ZooKeeper has told its place since."""
    asked: list[list[str]] = []

    def succeed(dead: list[str]) -> bool:
        asked.append(dead)
        return len(asked) > 1

    ahead = Ahead(500, succeed, lambda info: None)
    ahead.look_at(["1"], {"1": MemberInfo(name="a")})
    ahead._ended("1", End.ENDED)
    ahead.look_at(["1"], {})
    assert asked == [["a"], ["a"]]
    ahead.stop()
