"""Each node is drained, again and again, while rows flow."""

import os

import pytest

from day_two.live import Live, nodes
from tools.offline_cluster import clients

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(7200)]

ROUNDS = int(os.environ.get("ESPHA_DRAINS", "2"))
"""How often each node is drained."""


def drain(node: str) -> None:
    """Drain a node as people do; it can be used again at once."""
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=5m")
    try:
        clients.kubectl("drain", node, *options, timeout=320)
    finally:
        clients.kubectl("uncordon", node)


@pytest.mark.parametrize("turn", range(ROUNDS))
@pytest.mark.parametrize("number", range(3))
def test_a_drained_node_costs_one_take_over_or_none(live: Live, number: int, turn: int) -> None:
    """One, where the active engine was on it; it hands over before it goes."""
    live.wait_ready()
    node = nodes()[number]
    before, place = live.take_overs, live.pods()[live.active][1]
    drain(node)
    if place == node:  # until the operator has seen the pods go, it was ready
        live.wait(lambda: live.take_overs > before, "the take-over is told")
    live.wait_ready()
    assert live.take_overs - before == (place == node), (
        f"turn {turn}: the active one was on {place}"
    )


def test_nothing_was_lost_or_aborted(live: Live) -> None:
    """The last test of this module: the rows end."""
    report = live.verify()
    print(report)
    counts = live.counts()
    assert counts["output"][0] == counts["output"][1], "outputs of aborted transactions"
    assert counts["order"][0] == counts["order"][1], "order records of aborted transactions"
    assert counts["output"][0] == report["sent"]
