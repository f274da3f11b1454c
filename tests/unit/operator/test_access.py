"""One namespace that is closed to the operator does not keep it from the others."""

import os
import signal
import time
from typing import Any

import kopf
import pytest
from kubernetes.dynamic.exceptions import ForbiddenError, NotFoundError

from espha_operator import __main__ as program
from espha_operator import handlers
from espha_operator.reconcile import access
from unit.operator.memory import Object, Objects, refusal


class _Cluster:
    """An API server that answers to lists in some namespaces with errors."""

    def __init__(self, **errors: Exception) -> None:
        self.errors = errors
        self.asked: list[str] = []

    def list_all(self, kind: str, namespace: str, selector: str) -> tuple[Objects, str]:
        self.asked.append(namespace)
        if namespace in self.errors:
            raise self.errors[namespace]
        return [], "1"


def forbidden() -> ForbiddenError:
    return ForbiddenError(refusal(403, "esphadeployments is forbidden"))


def runs(
    monkeypatch: pytest.MonkeyPatch, namespaces: str, cluster: _Cluster
) -> tuple[kopf.Memo, Object]:
    """Start the program; return what handlers are given, and what kopf is told."""
    told: dict[str, Any] = {}
    monkeypatch.setenv("ESPHA_WATCH_NAMESPACES", namespaces)
    monkeypatch.setattr(program, "Cluster", lambda: cluster)
    monkeypatch.setattr(kopf, "run", lambda **settings: told.update(settings))
    program.main()
    return told["memo"], told


def test_a_namespace_that_is_forbidden_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Role has gone with it, when it was deleted; the others are kept."""
    memo, told = runs(monkeypatch, "shop,plant", _Cluster(plant=forbidden()))
    assert (told["namespaces"], told["clusterwide"]) == (("shop",), False)
    assert (memo.namespaces, memo.forbidden) == (("shop",), ("plant",))


def test_an_operator_for_all_namespaces_asks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _Cluster()
    memo, told = runs(monkeypatch, "", cluster)
    assert (told["namespaces"], told["clusterwide"], cluster.asked) == ((), True, [])
    assert (memo.namespaces, memo.forbidden) == ((), ())


def test_where_all_are_forbidden_it_does_not_work_in_the_whole_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SystemExit, match="plant"):
        runs(monkeypatch, "plant", _Cluster(plant=forbidden()))


def test_a_kind_that_is_not_there_is_not_forbidden() -> None:
    """What is to be done then is said at the startup."""
    cluster = _Cluster(shop=NotFoundError(refusal(404, "no such kind")))
    assert access.allowed(cluster, ("shop",)) == ("shop",)


def test_it_waits_until_one_is_open_also_when_nobody_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = _Cluster(shop=forbidden(), plant=OSError("no route to host"))
    monkeypatch.setattr(time, "sleep", lambda _: later(cluster))

    def later(cluster: _Cluster) -> None:
        if cluster.asked.count("plant") == 2:
            del cluster.errors["plant"]

    assert access.await_any(cluster, ("plant", "shop")) == ("plant",)
    assert cluster.asked.count("plant") == 3


def test_it_ends_in_order_when_one_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started again then, and lets go of its leases before."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(os, "kill", lambda *one: sent.append(one))
    handlers.end_when_open(kopf.Memo(cluster=_Cluster(), forbidden=("plant",)))
    assert sent == [(os.getpid(), signal.SIGTERM)]
