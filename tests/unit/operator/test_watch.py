"""Watches and the store that they fill."""

from collections.abc import Iterator
from typing import Any

import pytest

from espha_operator.reconcile import watch
from espha_operator.reconcile.store import Store
from espha_operator.reconcile.watch import Watch

Object = dict[str, Any]


def pod(name: str, version: int, namespace: str = "shop", **labels: str) -> Object:
    meta = {"name": name, "namespace": namespace, "resourceVersion": str(version)}
    return {"metadata": {**meta, "labels": labels, "managedFields": ["much"]}}


class _Source:
    """An API server: what it lists, and what each watch brings."""

    def __init__(self, listed: list[Object], *watches: list[Object]) -> None:
        self.listed, self.watches = listed, list(watches)
        self.asked: list[str] = []

    def list_all(self, kind: str, namespace: str, selector: str) -> tuple[list[Object], str]:
        self.asked.append("list")
        return self.listed, "10"

    def events(
        self, kind: str, namespace: str, selector: str, version: str, life: int
    ) -> Iterator[Object]:
        self.asked.append(f"watch from {version}")
        yield from self.watches.pop(0)


def names(store: Store, **labels: str) -> list[str]:
    return [one["metadata"]["name"] for one in store.list("Pod", "shop", labels)]


def test_what_happens_is_seen_and_a_watch_goes_on_where_it_ended() -> None:
    source = _Source(
        [pod("a", 1), pod("b", 2)],
        [
            {"type": "ADDED", "object": pod("c", 11)},
            {"type": "DELETED", "object": pod("a", 12)},
            {"type": "BOOKMARK", "object": pod("", 20)},
        ],
        [{"type": "MODIFIED", "object": pod("b", 21, color="red")}],
    )
    store = Store()
    one = Watch(source, store, "Pod")
    one.turn()
    assert names(store) == ["b", "c"]
    one.turn()
    assert source.asked == ["list", "watch from 10", "watch from 20"]
    assert names(store, color="red") == ["b"]
    assert "managedFields" not in store.list("Pod", "shop", {})[0]["metadata"]


def test_a_watch_that_is_too_old_lists_anew_and_forgets_what_has_gone() -> None:
    gone = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
    source = _Source([pod("a", 1), pod("b", 2)], [gone], [])
    store = Store()
    one = Watch(source, store, "Pod")
    one.turn()
    source.listed = [pod("b", 3)]
    one.turn()
    assert source.asked == ["list", "watch from 10", "list", "watch from 10"]
    assert names(store) == ["b"]


def test_another_error_is_raised_so_that_the_watch_pauses() -> None:
    source = _Source([], [{"type": "ERROR", "object": {"code": 500, "message": "no"}}])
    with pytest.raises(watch.WatchError, match="no"):
        Watch(source, Store(), "Pod").turn()


def test_an_older_object_does_not_replace_a_newer_one() -> None:
    store = Store()
    store.put("Pod", pod("a", 10, color="new"))
    store.put("Pod", pod("a", 9, color="old"))
    assert names(store, color="new") == ["a"]


def test_a_later_object_of_the_same_name_is_not_forgotten() -> None:
    store = Store()
    first, second = pod("a", 1), pod("a", 2, color="new")
    first["metadata"]["uid"], second["metadata"]["uid"] = "1", "2"
    store.put("Pod", first)
    store.put("Pod", second)
    store.remove("Pod", first)
    assert names(store, color="new") == ["a"]
    store.remove("Pod", second)
    assert names(store) == []


def test_a_list_of_one_namespace_leaves_others_alone() -> None:
    store = Store()
    store.put("Pod", pod("a", 1))
    store.put("Pod", pod("x", 1, namespace="other"))
    store.replace("Pod", "other", [])
    assert names(store) == ["a"]
    assert store.get("Pod", "other", "x") is None
    store.replace("Pod", "", [])
    assert names(store) == []
