"""Those who stand before one in the election, and who leads when they have ended."""

from espha.ha.ahead import Ahead
from espha.ha.heartbeat import End
from espha.protocol.member import MemberInfo


def test_somebody_before_of_whom_nothing_can_be_read_is_before_all_the_same() -> None:
    """Its token is another one, as while tokens are changed: it leads then, or is elected."""
    asked: list[list[str]] = []

    def succeed(dead: list[str]) -> bool:
        asked.append(dead)
        return True

    ahead = Ahead(500, succeed, lambda info: None)
    ahead.look_at(["1", "2"], {"1": MemberInfo(name="a")})
    assert not ahead.only_leader
    ahead._ended("1", End.ENDED)
    assert asked == []
    ahead.look_at(["1"], {})
    assert asked == [["a"]]
    ahead.stop()


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
