"""What the operator does when it starts, and what it tells of itself."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import kopf
import pytest

from espha_operator import handlers
from espha_operator.api import KIND
from espha_operator.reconcile.cluster import MissingKindError
from espha_operator.reconcile.fleet import Fleet
from espha_operator.reconcile.lease import Leaseholder
from espha_operator.reconcile.order_logs import OrderLogs
from espha_operator.reconcile.store import Store
from support.servers import wait_until
from unit.operator.memory import Object


class _NoKind:
    """An API server without the CRD."""

    def require_kind(self, namespaces: tuple[str, ...]) -> None:
        raise MissingKindError("install the CustomResourceDefinition")


class _Fleet:
    def __init__(self, **ages: float) -> None:
        self._ages = ages

    def ages(self) -> dict[str, float]:
        return self._ages

    def stuck(self) -> dict[str, float]:
        return {name: age for name, age in self._ages.items() if age > 90}


class _Leases:
    def waiting(self) -> dict[str, str]:
        return {"plant": "other/two"}


def told(**ages: float) -> Any:
    memo = kopf.Memo(fleet=_Fleet(**ages), leases=_Leases(), forbidden=("mine",))
    return asyncio.run(handlers.deployments(memo=memo))


def test_without_its_kind_the_operator_ends_with_a_sentence() -> None:
    """It would wait for ever else: kopf looks for the kind once."""
    memo = kopf.Memo(cluster=_NoKind(), namespaces=())
    with pytest.raises(kopf.PermanentError, match="install the CustomResourceDefinition"):
        asyncio.run(handlers.startup(settings=kopf.OperatorSettings(), memo=memo))


def test_one_stuck_deployment_is_told_and_does_not_end_the_operator() -> None:
    assert told(good=0.5, bad=500.0) == {
        "kept": 2,
        "slowest_step_seconds": 500.0,
        "stuck": ["bad"],
        "waiting": {"plant": "other/two"},
        "forbidden": ("mine",),
    }


def test_when_none_gets_on_it_is_the_operator() -> None:
    with pytest.raises(kopf.PermanentError, match="no step of any deployment"):
        told(one=91.0, two=500.0)


def test_without_deployments_all_is_well() -> None:
    assert told()["kept"] == 0


def test_no_handler_needs_a_finalizer() -> None:
    """A namespace would hang on it when the operator has gone first."""
    registry = kopf.get_default_registry()
    kinds = (registry._changing, registry._spawning)
    assert [one for kind in kinds for one in kind.get_all_handlers()] == []


class _Free:
    """An API server on which nobody has a lease."""

    def read(self, kind: str, namespace: str, name: str) -> Object | None:
        return None

    def create(self, wanted: Object) -> None:
        return

    def replace(self, wanted: Object) -> Object:
        return wanted


class _Held(Leaseholder):
    """Lets go of namespaces when the test allows it."""

    def __init__(self) -> None:
        super().__init__(_Free(), "system/one", lambda why: None)
        self.letting_go, self.go = threading.Event(), threading.Event()

    def keep_only(self, namespaces: Callable[[], set[str]]) -> None:
        self.letting_go.set()
        self.go.wait(10)
        super().keep_only(namespaces)


class _Early(Fleet):
    """Something happens before a deployment is kept."""

    before: Callable[[], None] = staticmethod(lambda: None)

    def add(self, which: tuple[str, str, str], *, later: bool) -> None:
        self.before()
        super().add(which, later=later)


@pytest.fixture
def memo() -> kopf.Memo:
    return kopf.Memo(
        cluster=SimpleNamespace(store=Store()),
        fleet=_Early(lambda *_: SimpleNamespace(), lambda namespace: False),
        leases=_Held(),
        order_logs=OrderLogs(),
    )


async def happens(memo: kopf.Memo, type: str, uid: str) -> None:
    meta = {"namespace": "shop", "name": "demo", "uid": uid, "resourceVersion": uid}
    await handlers.event(type=type, body=kopf.Body({"metadata": meta}), memo=memo)


def test_a_deployment_that_comes_while_the_last_one_goes_has_its_namespaces_lease(
    memo: kopf.Memo,
) -> None:
    async def play() -> None:
        await happens(memo, "ADDED", "1")
        leaving = asyncio.create_task(happens(memo, "DELETED", "1"))
        await asyncio.to_thread(memo.leases.letting_go.wait, 10)
        await happens(memo, "ADDED", "2")
        memo.leases.go.set()
        await leaving

    asyncio.run(play())
    wait_until(lambda: memo.leases.holds("shop"), 10, "the lease")


def test_a_lease_is_wanted_when_others_see_what_for(memo: kopf.Memo) -> None:
    """Leases that nobody needs may be let go at any time."""
    memo.leases.go.set()
    memo.fleet.before = lambda: memo.leases.keep_only(lambda: memo.fleet.namespaces)
    asyncio.run(happens(memo, "ADDED", "1"))
    wait_until(lambda: memo.leases.holds("shop"), 10, "the lease")


def test_one_that_has_gone_unseen_leaves_the_next_one_of_its_name_alone(memo: kopf.Memo) -> None:
    memo.leases.go.set()
    asyncio.run(happens(memo, "ADDED", "1"))
    asyncio.run(happens(memo, "ADDED", "2"))
    handlers.gone(memo, ("shop", "demo", "1"))
    assert memo.cluster.store.get(KIND, "shop", "demo")["metadata"]["uid"] == "2"
    assert len(memo.fleet.facts()) == 1
    handlers.gone(memo, ("shop", "demo", "2"))
    assert memo.cluster.store.get(KIND, "shop", "demo") is None
    assert not memo.fleet.facts()
    assert not memo.leases.holds("shop")
