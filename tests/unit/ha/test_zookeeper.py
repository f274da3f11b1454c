"""ZooKeeper's servers, and how they are found."""

import selectors
import socket
from typing import Any

import pytest

from espha.ha import zookeeper
from espha.ha.zookeeper import client, hosts, located
from espha.protocol.resolver import Resolver


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What is known of names."""
    addresses: dict[str, list[str]] = {}
    resolver = Resolver()
    monkeypatch.setattr(resolver, "last_known", lambda host: addresses.get(host, []))
    monkeypatch.setattr(zookeeper, "RESOLVER", resolver)
    return addresses


@pytest.mark.parametrize(
    ("servers", "found"),
    [
        ("a:1,b:2", "10.0.0.1:1,10.0.0.2:1,b:2"),
        ("a", "10.0.0.1:2181,10.0.0.2:2181"),
        ("c:1, a:2/some/path", "[fd00::1]:1,10.0.0.1:2,10.0.0.2:2"),
        ("127.0.0.1:1,[::1]:2", "127.0.0.1:1,[::1]:2"),
        ("", ""),
    ],
)
def test_addresses_stand_for_names_that_are_known(
    known: dict[str, list[str]], servers: str, found: str
) -> None:
    known.update(a=["10.0.0.1", "10.0.0.2"], c=["fd00::1"])
    assert located(servers) == found


def test_a_client_connects_to_addresses_that_are_known(
    known: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not take each of them for a server: it would have less patience with all."""
    known.update(a=["10.0.0.1", "10.0.0.2"])

    def ask(host: str, port: int, **_: Any) -> list[Any]:
        if host == "gone":
            raise socket.gaierror(socket.EAI_AGAIN, "nobody answers")
        return [(0, 0, 0, "", (f"of {host}", port))]

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    made = client("a:1,b:2,gone:3", 1.0)
    assert len(made.hosts) == 3
    assert sorted(made._connection._expand_client_hosts()) == [
        ("a", "10.0.0.1", 1),
        ("a", "10.0.0.2", 1),
        ("b", "of b", 2),
    ]


def test_hosts_are_those_of_the_list() -> None:
    assert hosts("zk-0.zk:2181,zk-1.zk:2181/path") == ["zk-0.zk", "zk-1.zk"]


def test_waiting_for_zookeeper_needs_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a sound connection would count as lost where none is left."""

    def none_left(*_: Any) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(selectors, "EpollSelector", none_left)
    monkeypatch.setattr(selectors, "DefaultSelector", none_left)
    handler = client("127.0.0.1:1", 1.0).handler
    one, other = socket.socketpair()
    with one, other:
        assert handler.select([one], [], [], 0.01)[0] == []
        other.send(b"x")
        assert handler.select([one], [], [], 10)[0] == [one]
