"""A stay in the election, in this process, so that its connection can be lost at any line."""

import contextlib
import itertools
import random
import socket
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import TransactionRequest
from kazoo.exceptions import ConnectionLoss

from espha.ha.election import Membership
from espha.ha.zookeeper import close_session
from espha.protocol.member import MemberInfo
from support.servers import ZooKeeper, wait_until

pytestmark = pytest.mark.component

LIMIT_S = 60


@pytest.fixture
def member(zookeeper: ZooKeeper) -> Iterator[Membership]:
    """One that does not stand for election yet."""
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    made = Membership(zookeeper.connect, root, "a", 10_000, lambda: None)
    yield made
    made.close()


def be_elected(member: Membership) -> None:
    """Stand for election, and wait."""
    member.join()
    wait_until(lambda: member.leads, LIMIT_S, "it is elected")


def lose_connection(member: Membership) -> None:
    """Cut the connection, and wait for the next one."""
    client, states = member._client, list[str]()
    client.add_listener(states.append)
    client._connection._socket.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: "CONNECTED" in states, LIMIT_S, "it has a connection again")
    client.remove_listener(states.append)


def be_closed(member: Membership, servers: str) -> None:
    """Have the session closed as a follower does it, and wait for the znode of the next one."""
    known, (session, password) = {member.znode, None}, member._session()
    close_session(servers, MemberInfo(name="a", session=session, password=password.hex()), 2)
    wait_until(lambda: member.znode not in known, LIMIT_S, "it has a new znode")


def test_a_connection_lost_before_it_finds_its_znode_makes_no_second_one(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of one session are a deadlock: the next one waits for a znode that never goes."""
    be_elected(member)
    client, looks = member._client, 0
    really = client.get_children

    def lost_behind(path: str) -> Any:
        nonlocal looks
        children = really(path)
        looks += 1
        if looks == 1:
            client._connection._socket.shutdown(socket.SHUT_RDWR)
            wait_until(lambda: not client.connected, LIMIT_S, "the connection is lost")
        return children

    monkeypatch.setattr(client, "get_children", lost_behind)
    before = member.znode
    member._wake.set()
    wait_until(lambda: looks >= 2 and client.connected, LIMIT_S, "it has looked again")
    assert member.queue() == ["a"]
    assert member.znode == before


def test_a_znode_whose_creation_was_not_confirmed_is_taken(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a server that lags behind, and does not show it yet, leads to a second one."""
    client, lost, behind = member._client, False, False
    really, create = client.get_children, client.create

    def unconfirmed(*arguments: Any, **options: Any) -> Any:
        nonlocal lost, behind
        made = create(*arguments, **options)
        if not lost:
            lost = behind = True
            raise ConnectionLoss
        return made

    def lags(path: str) -> Any:
        nonlocal behind
        if behind:
            behind = False
            return []
        return really(path)

    monkeypatch.setattr(client, "create", unconfirmed)
    monkeypatch.setattr(client, "get_children", lags)
    be_elected(member)
    assert lost
    assert member.queue() == ["a"]


def test_a_step_to_the_end_that_was_not_confirmed_is_not_taken_twice(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is lost; at the next attempt the znode that it left is gone already."""
    be_elected(member)
    steps: list[TransactionRequest] = []

    def unconfirmed() -> TransactionRequest:
        steps.append(step := TransactionRequest(member._client))
        if len(steps) == 1:
            commit = step.commit

            def lost() -> None:
                commit()
                raise ConnectionLoss

            monkeypatch.setattr(step, "commit", lost)
        return step

    monkeypatch.setattr(member._client, "transaction", unconfirmed)
    first = member.znode
    member.requeue()
    wait_until(lambda: member.leads and member.znode != first, LIMIT_S, "it is elected again")
    assert len(steps) == 2
    assert member.queue() == ["a"]


def test_servers_that_are_gone_without_a_word_cost_no_session(
    zookeeper: ZooKeeper, gone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost connection finds the server that lives, also when all others are asked twice before.

    Kazoo asks in rounds: it goes on behind the server that it lost, and then from the start. So
    the one that lives is the first of one round here, and the last of the next.
    """
    first = itertools.cycle([True, False])
    monkeypatch.setattr(random, "shuffle", lambda hosts: hosts.sort(key=alive, reverse=next(first)))

    def alive(host: tuple[str, str, int]) -> bool:
        return f"{host[1]}:{host[2]}" == zookeeper.connect

    servers = ",".join([*gone, zookeeper.connect])
    member = Membership(servers, f"/ESP/test/{uuid.uuid4().hex[:8]}", "a", 4_000, lambda: None)
    try:
        be_elected(member)
        before = member.znode
        for _ in range(3):
            lose_connection(member)
        assert member.queue() == ["a"]
        assert member.znode == before
    finally:
        member.close()


def test_servers_that_are_gone_without_a_word_keep_no_dead_session(
    zookeeper: ZooKeeper, gone: list[str]
) -> None:
    """A follower closes it on a server that lives; its owner, who lives here, gets a new one."""
    servers = ",".join([*gone, zookeeper.connect])
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    member = Membership(zookeeper.connect, root, "a", 2_000, lambda: None)
    try:
        be_elected(member)
        for _ in range(6):
            be_closed(member, servers)
    finally:
        member.close()


@pytest.fixture
def gone() -> Iterator[list[str]]:
    """Two addresses at which nobody accepts and nobody refuses: their queues are full."""
    with contextlib.ExitStack() as stack:
        addresses = []
        for _ in range(2):
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
            address = server.getsockname()
            full = False
            while not full:
                try:
                    stack.enter_context(socket.create_connection(address, 0.2))
                except TimeoutError:
                    full = True
            addresses.append(f"{address[0]}:{address[1]}")
        yield addresses
