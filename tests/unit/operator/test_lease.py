"""Leases: one operator works in a namespace, the others wait."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from espha_operator.reconcile import lease
from espha_operator.reconcile.lease import Lease, Leaseholder, NotHeldError
from support.servers import wait_until

Object = dict[str, Any]


class _Leases:
    """An API server with one lease."""

    def __init__(self) -> None:
        self.kept: Object | None = None
        self.version = 0
        self.away = False

    def _keep(self, wanted: Object) -> Object:
        self.version += 1
        meta = {**wanted["metadata"], "resourceVersion": str(self.version)}
        self.kept = {**wanted, "metadata": meta}
        return self.kept

    def read(self, kind: str, namespace: str, name: str) -> Object | None:
        self._answer()
        return self.kept

    def create(self, wanted: Object) -> None:
        self._answer()
        if self.kept is not None:
            raise ApiException(status=409)
        self._keep(wanted)

    def replace(self, wanted: Object) -> Object:
        self._answer()
        if self.kept is None:
            raise ApiException(status=404)
        if wanted["metadata"]["resourceVersion"] != self.kept["metadata"]["resourceVersion"]:
            raise ApiException(status=409)
        return self._keep(wanted)

    def _answer(self) -> None:
        if self.away:
            raise OSError("no route to host")


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> _Leases:
    return _Leases()


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def first(server: _Leases, clock: _Clock) -> Lease:
    made = Lease(server, "shop", "system/one", clock)
    made.turn()
    return made


@pytest.fixture
def second(first: Lease, server: _Leases, clock: _Clock) -> Lease:
    return Lease(server, "shop", "other/two", clock)


def test_the_second_waits_as_long_as_the_first_renews(
    first: Lease, second: Lease, clock: _Clock
) -> None:
    for _ in range(30):
        clock.now += lease.RENEW
        first.turn()
        second.turn()
        assert (first.held, second.held, second.holder) == (True, False, "system/one")


def test_the_second_takes_over_when_nobody_renews_and_never_while_the_first_may_write(
    first: Lease, second: Lease, clock: _Clock
) -> None:
    taken = None
    for second_passed in range(120):
        clock.now += 1
        second.turn()
        assert not (first.held and second.held)
        taken = taken or (second_passed if second.held else None)
    assert taken is not None
    assert taken >= lease.GIVE_UP + 10
    first.turn()
    assert first.lost
    assert (first.held, second.held) == (False, True)


def test_one_that_is_released_is_taken_at_once(first: Lease, second: Lease) -> None:
    first.release()
    second.turn()
    assert (first.held, second.held) == (False, True)
    first.turn()
    assert not first.held
    assert not first.lost


def test_a_container_that_starts_again_in_its_pod_need_not_wait(
    first: Lease, server: _Leases, clock: _Clock
) -> None:
    again = Lease(server, "shop", "system/one", clock)
    again.turn()
    assert again.held


def test_an_api_server_that_was_away_costs_the_lease_only_when_another_has_taken_it(
    first: Lease, server: _Leases, clock: _Clock
) -> None:
    server.away = True
    clock.now += lease.GIVE_UP
    with pytest.raises(OSError, match="no route"):
        first.turn()
    assert not first.held
    server.away = False
    first.turn()
    assert first.held


def test_a_lease_that_somebody_deletes_is_made_again(first: Lease, server: _Leases) -> None:
    server.kept = None
    first.turn()
    first.turn()
    assert first.held
    assert not first.lost


def test_nothing_is_written_where_others_work(server: _Leases) -> None:
    holder = Leaseholder(server, "system/one", lambda why: None)
    with pytest.raises(NotHeldError, match="namespace shop"):
        holder.require("shop")


@pytest.fixture
def holder(server: _Leases, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaseholder]:
    monkeypatch.setattr(lease, "LOOK", 0.01)
    made = Leaseholder(server, "system/one", lambda why: None)
    yield made
    made.release()


def test_a_namespace_that_is_wanted_while_others_are_let_go_stays_wanted(
    holder: Leaseholder,
) -> None:
    """Who has deployments is asked when no other namespace can come in between."""
    there: set[str] = set()
    asked, asks = threading.Event(), threading.Event()

    def namespaces() -> set[str]:
        found = set(there)
        asks.set()
        asked.wait(10)
        return found

    holder.want("shop")
    letting_go = threading.Thread(target=holder.keep_only, args=(namespaces,))
    letting_go.start()
    asks.wait(10)
    there.add("shop")
    wanting = threading.Thread(target=holder.want, args=("shop",))
    wanting.start()
    wanting.join(0.2)
    asked.set()
    letting_go.join()
    wanting.join()
    wait_until(lambda: holder.holds("shop"), 10, "the lease")


def test_what_nobody_has_thought_of_ends_no_lease(
    holder: Leaseholder, server: _Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that is no JSON, say: the next try is a good one."""
    answers = iter([ValueError("no JSON")])
    monkeypatch.setattr(server, "_answer", lambda: _raise(next(answers, None)))
    holder.want("shop")
    wait_until(lambda: holder.holds("shop"), 10, "the lease")


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error
