"""A stay in the election on a machine without room."""

import threading

import pytest

from espha.ha.election import Membership
from support.processes import descriptors, room_for
from support.servers import wait_until


@pytest.mark.parametrize("room", range(4))
def test_without_room_for_its_threads_a_stay_leaves_nothing_behind(
    room: int,
) -> None:
    """The next life tries again, on a machine that has even less room otherwise."""
    before, held = set(threading.enumerate()), descriptors()
    with room_for(room), pytest.raises(RuntimeError, match="new thread"):
        Membership("127.0.0.1:1", "/e", "a", 1000, lambda: None)
    wait_until(lambda: set(threading.enumerate()) <= before, 60, "no thread is left")
    wait_until(lambda: descriptors() <= held, 60, "no descriptor is left")


def test_who_gives_its_place_away_does_not_lead_at_once_from_it() -> None:
    """It goes to the end of the queue, or has ended, when those before it turn out to be dead."""
    elected: list[str] = []
    stays = Membership(
        "127.0.0.1:1", "/e", "a", 1000, lambda: elected.append("a"), succeeds=lambda dead: True
    )
    try:
        stays.fall_back()
        assert not stays._succeed(["b"])
        stays._leaving.clear()
        stays._closed.set()
        assert not stays._succeed(["b"])
        stays._closed.clear()
        assert stays._succeed(["b"])
        assert not stays._succeed(["b"]), "once"
        assert elected == ["a"]
    finally:
        stays.close()


def test_who_finds_no_thread_to_stand_for_election_tries_again() -> None:
    """The engine goes on, and says each tenth of a second that it could lead."""
    stays = Membership("127.0.0.1:1", "/e", "a", 1000, lambda: None)
    try:
        before = set(threading.enumerate())
        with room_for(0):
            stays.join()
        stays.join()
        new = set(threading.enumerate()) - before
        assert "election" in {thread.name for thread in new}
    finally:
        stays.close()
