"""A stay in the election, in this process, so that its connection can be lost at any line."""

import contextlib
import errno
import itertools
import random
import socket
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import ConnectionLoss, NoAuthError

from espha.ha import election
from espha.ha.election import Membership
from espha.ha.heartbeat import End, HeartbeatServer
from espha.ha.zookeeper import close_session
from espha.protocol.http import RESOLVER
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


def test_a_machine_without_room_for_a_thread_ends_no_stay_in_the_election(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stand before others for ever, and never lead."""
    look, failed = member._ahead.look_at, list[str]()

    def crowded(*given: Any) -> None:
        if not failed:
            failed.append("can't start new thread")
            raise RuntimeError(failed[0])
        look(*given)

    monkeypatch.setattr(member._ahead, "look_at", crowded)
    member.join()
    wait_until(lambda: bool(failed), LIMIT_S, "no thread is left")
    wait_until(lambda: member.leads and member._confirmed > 0, LIMIT_S, "it goes on")
    looked = member._confirmed
    member._wake.set()
    wait_until(lambda: member._confirmed > looked, LIMIT_S, "it looks again")


def test_whoever_leads_does_not_fall_back(member: Membership) -> None:
    """Its supervisor hears that the child is late just when it was elected.

    Others would lead one after the other.
    """
    be_elected(member)
    before = member.znode
    member.fall_back()
    assert not member._leaving.is_set()
    assert (member.leads, member.znode) == (True, before)


def test_whoever_falls_back_while_it_is_about_to_be_elected_leads_from_the_end_of_the_queue(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, first, elected = member._lets_others_go, list[str | None](), list[str | None]()

    def falls_back_meanwhile(queue: list[str]) -> bool:
        if not first:
            first.append(member.znode)
            member.fall_back()
        return really(queue)

    monkeypatch.setattr(member, "_lets_others_go", falls_back_meanwhile)
    monkeypatch.setattr(member, "_on_elected", lambda: elected.append(member.znode))
    member.join()
    wait_until(lambda: bool(elected) and [member.znode] != first, LIMIT_S, "it leads from the end")
    assert elected == [member.znode]


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
    member = Membership(servers, f"/ESP/test/{uuid.uuid4().hex[:8]}", "a", 8_000, lambda: None)
    try:
        be_elected(member)
        before = member.znode
        for _ in range(3):
            lose_connection(member)
        assert member.queue() == ["a"]
        assert member.znode == before
    finally:
        member.close()


def test_a_lost_connection_asks_nobody_for_names(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that know names may have gone with the one of ZooKeeper: the session would end."""
    port, over, really = zookeeper.connect.rpartition(":")[2], threading.Event(), socket.getaddrinfo
    RESOLVER.refresh(["localhost"])
    wait_until(lambda: "127.0.0.1" in RESOLVER.last_known("localhost"), LIMIT_S, "it is known")

    def hang(host: str, *rest: Any, **named: Any) -> Any:
        if host == "localhost":
            over.wait(LIMIT_S)
        return really(host, *rest, **named)

    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    member = Membership(f"localhost:{port}", root, "a", 10_000, lambda: None)
    try:
        be_elected(member)
        before = member.znode
        monkeypatch.setattr(socket, "getaddrinfo", hang)
        for _ in range(3):
            lose_connection(member)
        assert (member.queue(), member.znode) == (["a"], before)
    finally:
        member.close()
        over.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_client_whose_thread_has_ended_begins_anew(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kazoo ends at an error that it does not know, as where no descriptor is left for a moment."""
    be_elected(member)
    before, fails = member.znode, [True]
    really = member._client._connection._expand_client_hosts

    def expand() -> Any:
        if fails:
            fails.clear()
            raise OSError(errno.EMFILE, "Too many open files")
        return really()

    monkeypatch.setattr(member._client._connection, "_expand_client_hosts", expand)
    lose_connection(member)
    wait_until(lambda: member.znode not in (None, before), LIMIT_S, "it stands again")
    wait_until(lambda: member.queue() == ["a"], LIMIT_S, "the session before is over")


def test_a_session_ends_in_time_although_a_name_is_not_resolved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever ends it restarts a child, which must not wait for servers of names."""
    over = threading.Event()

    def hang(*_: Any, **__: Any) -> Any:
        over.wait(LIMIT_S)
        raise socket.gaierror(socket.EAI_AGAIN, "nobody answers")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    monkeypatch.setattr(election, "_CLOSE_S", 0.2)
    member = Membership("nowhere:1", "/ESP/test/none", "a", 2_000, lambda: None)
    ending = threading.Thread(target=member.close)
    ending.start()
    ending.join(LIMIT_S / 2)
    assert not ending.is_alive(), "it is waited for"
    over.set()


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


def test_whoever_has_lost_its_session_finds_out_whether_it_still_leads(
    zookeeper: ZooKeeper,
) -> None:
    """Another one may have led meanwhile: the child is told to look, and is elected again."""
    root, said = f"/ESP/test/{uuid.uuid4().hex[:8]}", list[str]()
    member = Membership(
        zookeeper.connect,
        root,
        "a",
        10_000,
        lambda: said.append("elected"),
        on_doubt=lambda: said.append("doubt"),
    )
    try:
        be_elected(member)
        be_closed(member, zookeeper.connect)
        wait_until(lambda: len(said) == 3, LIMIT_S, "it is elected again")
        assert said == ["elected", "doubt", "elected"]
    finally:
        member.close()


@contextlib.contextmanager
def standing(servers: str, root: str, *names: str, **options: Any) -> Iterator[list[Membership]]:
    """Have members stand, one behind the other."""
    with contextlib.ExitStack() as stack:
        made: list[Membership] = []
        for name in names:
            member = Membership(servers, root, name, 10_000, lambda: None, **options)
            stack.callback(member.close)
            made.append(member)
            member.join()
            wait_until(lambda: member.znode is not None, LIMIT_S, f"{name} stands")  # noqa: B023
        yield made


def test_whoever_is_behind_lets_the_others_go_first_but_once(zookeeper: ZooKeeper) -> None:
    """If all are behind, somebody has to lead nevertheless."""
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    with (
        standing(zookeeper.connect, root, "a") as (leader,),
        standing(zookeeper.connect, root, "b", "c", ready=lambda: False) as (second, third),
    ):
        wait_until(lambda: leader.leads, LIMIT_S, "a leads")
        leader.close()
        wait_until(lambda: second.leads, LIMIT_S, "b leads: c has let it go first, too")
        assert not third.leads
        assert second.queue() == ["b", "c"]


def test_whoever_is_behind_gives_way_to_whoever_is_not(zookeeper: ZooKeeper) -> None:
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    with (
        standing(zookeeper.connect, root, "a") as (leader,),
        standing(zookeeper.connect, root, "b", ready=lambda: False) as (second,),
        standing(zookeeper.connect, root, "c") as (third,),
    ):
        wait_until(lambda: leader.leads, LIMIT_S, "a leads")
        leader.close()
        wait_until(lambda: second.leads or third.leads, LIMIT_S, "one of them leads")
        assert third.leads, "it is not the one that is in step"
        assert third.queue() == ["c", "b"]


def test_a_znode_that_nobody_owns_stops_no_election(zookeeper: ZooKeeper) -> None:
    """Anybody can make one that stands before all others, and never goes."""
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    client = KazooClient(zookeeper.connect)
    client.start()
    client.create(f"{root}/server-n_0000000000-x", b"nobody", makepath=True)
    client.stop()
    with standing(zookeeper.connect, root, "a", "b") as (first, second):
        wait_until(lambda: first.leads, LIMIT_S, "a leads")
        first.close()
        wait_until(lambda: second.leads, LIMIT_S, "b leads")


def test_who_does_not_know_the_token_reads_no_password(zookeeper: ZooKeeper) -> None:
    """With it anybody could close the sessions of all engines."""
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    with standing(zookeeper.connect, root, "a", "b", token="s") as (first, second):  # noqa: S106
        wait_until(lambda: first.leads, LIMIT_S, "a leads")
        client = KazooClient(zookeeper.connect)
        client.start()
        with pytest.raises(NoAuthError):
            client.get(first.znode)
        client.stop()
        assert second.queue() == ["a", "b"]
        be_closed(first, zookeeper.connect)
        wait_until(lambda: second.leads, LIMIT_S, "b leads")


def test_a_live_one_is_not_succeeded(zookeeper: ZooKeeper) -> None:
    """Those before this one live: whatever it may think of them, it waits."""
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    server = HeartbeatServer("127.0.0.1")
    with standing(
        zookeeper.connect, root, "a", "b", "c", address=server.address, succeeds=lambda dead: True
    ) as members:
        wait_until(lambda: server.watched == 3, LIMIT_S, "all are watched by all behind them")
        members[1]._ahead._ended(members[0].znode or "", End.SILENT)
        assert [one.leads for one in members[1:]] == [False, False]
    server.close()


def test_each_start_of_zookeeper_takes_little_room(tmp_path: Path) -> None:
    """Each one begins a log: by default with 64 MiB, so that fifteen starts were 1 GiB."""
    servers = ZooKeeper(tmp_path)
    for _ in range(2):
        try:
            servers.start()
            client = KazooClient(servers.connect)
            client.start(LIMIT_S)
            client.create("/here", makepath=True, sequence=True)
            client.stop()
        finally:
            servers.stop()
    logs = list(tmp_path.glob("zookeeper-0/data/version-2/log.*"))
    assert len(logs) == 2
    assert sum(log.stat().st_size for log in logs) < 4 << 20
