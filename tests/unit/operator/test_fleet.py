"""Each deployment has a thread of its own: what one of them does to itself, others do not feel."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from espha_operator.reconcile import fleet
from espha_operator.reconcile.fleet import Fleet
from support.servers import wait_until
from unit.operator.memory import refusal

REFUSALS = {"forbidden": 403, "busy": 429, "away": 503}
"""Names of deployments, and what the API server answers to their steps."""


class _Steps:
    """A deployment's steps: one that hangs, one that fails, or a good one."""

    def __init__(self, name: str, done: Counter[str], release: threading.Event) -> None:
        self._name, self._done, self._release = name, done, release

    def step(self) -> None:
        self._done[self._name] += 1
        if self._name == "hangs":
            self._release.wait()
        if self._name == "fails":
            raise AttributeError("nobody has thought of this")
        if self._name in REFUSALS:
            raise refusal(REFUSALS[self._name], self._name)

    def failed(self, why: str) -> None:
        self._done[f"said: {why}"] += 1


@pytest.fixture
def done() -> Counter[str]:
    return Counter()


@pytest.fixture
def good(done: Counter[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setattr(fleet, "INTERVAL", 0.01)
    monkeypatch.setattr(fleet, "SPREAD", 0.01)
    release = threading.Event()
    made = Fleet(
        lambda _, name, uid: _Steps(name, done, release), lambda namespace: namespace == "shop"
    )
    yield made
    made.stop()
    release.set()


def test_one_that_hangs_or_fails_is_seen_and_harms_no_other(
    good: Fleet, done: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hangs", "fails", *map(str, range(20))):
        good.add(("shop", name, name), later=True)
    wait_until(lambda: all(done[str(one)] >= 20 for one in range(20)), 30, "twenty steps of each")
    assert done["hangs"] == 1
    assert 1 <= done["fails"] < min(done[str(one)] for one in range(20))
    monkeypatch.setattr(fleet, "STUCK", good.ages()["shop/hangs"] * 0.99)
    assert "shop/hangs" in good.stuck()
    assert "shop/0" not in good.stuck()


def test_nothing_is_done_in_a_namespace_of_another_operator(
    good: Fleet, done: Counter[str]
) -> None:
    good.add(("theirs", "a", "a"), later=False)
    good.add(("shop", "b", "b"), later=False)
    wait_until(lambda: done["b"] >= 5, 30, "steps")
    assert done["a"] == 0
    assert good.namespaces == {"theirs", "shop"}


def test_a_deployment_that_has_gone_is_stepped_no_more(good: Fleet, done: Counter[str]) -> None:
    good.add(("shop", "b", "old"), later=False)
    wait_until(lambda: done["b"] >= 1, 30, "a step")
    good.add(("shop", "b", "new"), later=False)
    good.remove(("shop", "b", "old"))
    assert list(good.ages()) == ["shop/b"]


def test_what_the_api_server_refuses_for_good_is_told(good: Fleet, done: Counter[str]) -> None:
    """What passes by itself is not."""
    for name in REFUSALS:
        good.add(("shop", name, name), later=False)
    wait_until(lambda: all(done[name] >= 2 for name in REFUSALS), 30, "two steps of each")
    assert {name for name in done if name.startswith("said: ")} == {"said: forbidden"}
