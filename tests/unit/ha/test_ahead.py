"""Those who stand before one in the election, and who leads when they have ended."""

import socket
import threading
from collections.abc import Iterator

import pytest

from espha.ha.ahead import Ahead
from espha.ha.heartbeat import End
from espha.protocol.member import MemberInfo
from support.processes import room_for
from support.servers import wait_until


@pytest.fixture
def somebody() -> Iterator[MemberInfo]:
    """Be somebody who is there, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        yield MemberInfo(name="a", address=address, lifeline=address)


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


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those whose sessions have been closed, by name."""
    names: list[str] = []
    monkeypatch.setattr(Ahead, "_begin_to_close", lambda _, one: names.append(one.info.name))
    return names


def test_who_is_only_silent_is_succeeded_when_zookeeper_says_so(closed: list[str]) -> None:
    """It may be this one's network: its session is closed, and the queue moves on, or does not."""
    asked: list[list[str]] = []

    def succeed(dead: list[str]) -> bool:
        asked.append(dead)
        return False

    ahead = Ahead(500, succeed, lambda info: None)
    ahead.look_at(["1"], {"1": MemberInfo(name="a")})
    ahead._ended("1", End.SILENT)
    ahead.look_at(["1"], {})
    assert (closed, asked) == (["a"], [])
    ahead.stop()


def test_behind_somebody_who_lives_no_session_is_closed(closed: list[str]) -> None:
    """That one looks after those before it."""
    ahead = Ahead(500, lambda dead: False, lambda info: None)
    ahead.look_at(["1", "2"], {"1": MemberInfo(name="a"), "2": MemberInfo(name="b")})
    ahead._ended("1", End.ENDED)
    ahead._ended("1", End.SILENT)
    assert closed == []
    ahead._ended("2", End.ENDED)
    assert closed == ["b", "a"]
    ahead.stop()


@pytest.mark.parametrize("room", [0, 1])
def test_without_room_for_its_threads_nobody_is_half_watched(
    somebody: MemberInfo, room: int
) -> None:
    """It is tried again soon, on a machine that has even less room otherwise."""
    before = set(threading.enumerate())
    ahead = Ahead(3_600_000, lambda dead: False, lambda info: None)
    with room_for(room), pytest.raises(RuntimeError, match="new thread"):
        ahead.look_at(["1"], {"1": somebody})
    assert ahead.unknown(["1"]) == ["1"]
    wait_until(lambda: set(threading.enumerate()) <= before, 60, "no thread is left")
    ahead.look_at(["1"], {"1": somebody})
    assert ahead.unknown(["1"]) == []
    ahead.stop()


def test_who_is_silent_is_watched_again_when_there_is_room(somebody: MemberInfo) -> None:
    ahead = Ahead(3_600_000, lambda dead: False, lambda info: None)
    ahead.look_at(["1", "2"], {"1": somebody, "2": somebody})
    with room_for(0):
        ahead._ended("1", End.SILENT)
    assert ahead.unknown(["1", "2"]) == ["1"]
    ahead.look_at(["1", "2"], {"1": somebody})
    assert list(ahead._those) == ["1", "2"]
    ahead.stop()
