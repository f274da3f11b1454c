"""Each node is drained, again and again, while rows flow."""

import os
import re
from collections import defaultdict
from statistics import quantiles

import pytest

from day_two.live import Live, drain, nodes

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(7200)]

ROUNDS = int(os.environ.get("ESPHA_DRAINS", "2"))
"""How often each node is drained."""
GAPS: list[int] = []
"""Of each take-over, ms from the last commit before to the first one after."""


def gap(told: str) -> int:
    """Return the gap (ms) that an Event tells."""
    found = re.search(r"; (\d+) ms between the last commit", told)
    assert found, told
    return int(found[1])


def take_overs(live: Live) -> set[str]:
    """Return what Events tell of take-overs, planned and others."""
    return {*live.events("TakenOver"), *live.events("FailedOver")}


DRAINED: dict[int, list[str]] = defaultdict(list)
"""The nodes that were drained so far, by turn."""


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("turn", range(ROUNDS))
def test_a_drained_node_costs_one_take_over_or_none(live: Live, turn: int, step: int) -> None:
    """One, where the active engine is on it, which hands over before it goes.

    In each turn every node is drained, and its turn comes when the active engine is there.
    """
    live.wait_ready()
    before, place = live.take_overs, live.pods()[live.active][1]
    left = [node for node in nodes() if node not in DRAINED[turn]]
    node = place if place in left else left[0]
    DRAINED[turn].append(node)
    before_it = take_overs(live)
    drain(node)
    if place == node:  # until the operator has seen the pods go, it was ready
        live.wait(lambda: live.take_overs > before, "the take-over is told")
    live.wait_ready()
    # At once: Kubernetes keeps Events for an hour. The operator posts no more than one a minute
    # when there are many.
    GAPS.extend(gap(told) for told in take_overs(live) - before_it)
    assert live.take_overs - before == (place == node), (
        f"turn {turn}, step {step}: {node} was drained, the active engine was on {place}"
    )


def test_nothing_was_lost_or_aborted(live: Live) -> None:
    """The last test of this module: the rows end."""
    report = live.verify()
    print(report)
    if len(GAPS) > 1:
        each = quantiles(GAPS, n=100, method="inclusive")
        print(f"{len(GAPS)} take-overs: gap p50 {each[49]:.0f} ms, p99 {each[98]:.0f} ms")
    assert report["ok"], report["complaints"]
    counts = live.counts()
    assert counts["output"][0] == counts["output"][1], "outputs of aborted transactions"
    assert counts["order"][0] == counts["order"][1], "order records of aborted transactions"
    assert counts["output"][0] == report["sent"]
