"""Names of hosts: what is known of them serves while nobody resolves them."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from espha.local.waiting import wait_until
from espha.protocol import resolver
from espha.protocol.resolver import Resolver
from support.processes import crowded, room_for

Answer = Callable[[], list[str]]
LIMIT_S = 60.0


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], None]:
    """Say what servers that know names answer."""
    answer: list[Answer] = []

    def ask(host: str, port: object, **_: Any) -> list[Any]:
        assert host == "heads"
        return [(0, 0, 0, "", (address, 0)) for address in answer[-1]()]

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    return answer.append


@pytest.fixture
def never() -> Iterator[Answer]:
    """An answer that does not come before the test is over."""
    over = threading.Event()

    def answer() -> list[str]:
        over.wait(LIMIT_S)
        return []

    yield answer
    over.set()


def fails(code: int) -> Answer:
    def answer() -> list[str]:
        raise socket.gaierror(code, "no")

    return answer


def test_all_addresses_are_found_each_time_anew(name: Callable[[Answer], None]) -> None:
    found = Resolver()
    name(lambda: ["10.0.0.1", "10.0.0.2", "10.0.0.1"])
    assert found.addresses("heads") == ["10.0.0.1", "10.0.0.2"]
    name(lambda: ["10.0.0.3"])
    assert found.addresses("heads") == ["10.0.0.3"]


def test_what_was_known_serves_while_nobody_answers(
    name: Callable[[Answer], None], never: Answer
) -> None:
    """Whoever watches others must not wait for servers of names, which may have gone with them."""
    found = Resolver()
    name(lambda: ["10.0.0.1"])
    found.addresses("heads")
    name(never)
    for _ in range(3):
        assert found.addresses("heads") == ["10.0.0.1"]
    assert sum(thread.name == "resolver" for thread in threading.enumerate()) == 1


def test_a_thread_that_could_not_start_keeps_nobody_from_asking(
    name: Callable[[Answer], None],
) -> None:
    found = Resolver()
    name(lambda: ["10.0.0.1"])
    with room_for(0), pytest.raises(RuntimeError):
        found.addresses("heads")
    assert found.addresses("heads") == ["10.0.0.1"]


def test_a_host_of_which_nothing_is_known_is_waited_for_and_given_up(
    name: Callable[[Answer], None], never: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "_FIRST_S", 0.01)
    name(never)
    assert Resolver().addresses("heads") == []


def test_what_is_kept_is_known_before_anybody_asks(
    name: Callable[[Answer], None], never: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks only when something has happened would ask for the first time then."""
    monkeypatch.setattr(resolver, "_EVERY_S", 0.01)
    found, stop = Resolver(), threading.Event()
    name(lambda: ["10.0.0.1"])
    found.keep(["heads", "127.0.0.1"], stop)
    wait_until(lambda: found.last_known("heads") == ["10.0.0.1"], LIMIT_S, "it is known")
    name(lambda: ["10.0.0.2"])
    wait_until(lambda: found.last_known("heads") == ["10.0.0.2"], LIMIT_S, "it has moved")
    name(never)
    assert found.addresses("heads") == ["10.0.0.2"]
    stop.set()


def test_what_is_kept_is_asked_for_again_where_a_thread_could_not_start(
    name: Callable[[Answer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "_EVERY_S", 0.01)
    found, stop = Resolver(), threading.Event()
    name(lambda: ["10.0.0.1"])
    start, refused = threading.Thread.start, list[threading.Thread]()

    def limited(thread: threading.Thread) -> None:
        if thread.name == "resolver" and not refused:
            refused.append(thread)
            crowded()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    found.keep(["heads"], stop)
    wait_until(lambda: found.last_known("heads") == ["10.0.0.1"], LIMIT_S, "it is known")
    assert refused
    stop.set()


def test_what_is_kept_and_unknown_is_waited_for_a_moment_only(
    name: Callable[[Answer], None], never: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "_FIRST_S", LIMIT_S)
    found, stop = Resolver(), threading.Event()
    name(never)
    found.keep(["heads"], stop)
    begun = time.monotonic()
    assert found.addresses("heads") == []
    assert time.monotonic() - begun < LIMIT_S / 2, "it is waited for"
    stop.set()


@pytest.mark.parametrize(
    ("code", "left"),
    [
        (socket.EAI_AGAIN, ["10.0.0.1"]),
        (socket.EAI_FAIL, ["10.0.0.1"]),
        (socket.EAI_SYSTEM, ["10.0.0.1"]),
        (socket.EAI_NONAME, []),
        (socket.EAI_NODATA, []),
    ],
)
def test_only_who_knows_that_there_is_no_such_host_is_believed(
    name: Callable[[Answer], None], code: int, left: list[str]
) -> None:
    found = Resolver()
    name(lambda: ["10.0.0.1"])
    found.addresses("heads")
    name(fails(code))
    assert found.addresses("heads") == left


def test_old_addresses_are_forgotten(
    name: Callable[[Answer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod of somebody else may have got them."""
    found = Resolver()
    name(lambda: ["10.0.0.1"])
    found.addresses("heads")
    name(fails(socket.EAI_AGAIN))
    later = time.monotonic() + resolver._KNOWN_FOR_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert found.addresses("heads") == []


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_an_address_is_its_own(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)
    assert Resolver().addresses(address) == [address]
