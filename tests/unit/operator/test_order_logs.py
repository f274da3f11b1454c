"""Two deployments on one Kafka must not write the same order log."""

from dataclasses import replace

import pytest

from espha_operator.api.deployment import Deployment
from espha_operator.reconcile.order_logs import OrderLogs
from unit.operator import samples

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def on(*servers: str, uid: str, name: str = "d") -> Deployment:
    kafka = {"external": {"bootstrapServers": list(servers)}} if servers else {}
    return replace(samples.deployment(kafka=kafka), uid=uid, name=name)


def test_the_one_made_first_wins_whoever_is_seen_first() -> None:
    logs = OrderLogs()
    assert logs.first(on("a:1", uid="2", name="late"), LATE, "p") == ""
    assert logs.first(on("a:1", uid="1", name="early"), EARLY, "p") == ""
    assert logs.first(on("a:1", uid="2", name="late"), LATE, "p") == "shop/early"


@pytest.mark.parametrize(
    ("servers", "prefix", "meets"),
    [
        (("a:1",), "p", True),
        (("B:1", "c:1"), "p", True),
        (("c:1",), "p", False),
        (("a:1",), "q", False),
        ((), "p", False),
    ],
)
def test_it_takes_a_common_server_and_the_same_prefix(
    servers: tuple[str, ...], prefix: str, meets: bool
) -> None:
    logs = OrderLogs()
    logs.first(on("a:1", "b:1", uid="1"), EARLY, "p")
    assert bool(logs.first(on(*servers, uid="2"), LATE, prefix)) == meets


def test_one_that_has_gone_or_moved_stands_in_nobodys_way() -> None:
    logs = OrderLogs()
    logs.first(on("a:1", uid="1"), EARLY, "p")
    logs.drop("1")
    assert logs.first(on("a:1", uid="2"), LATE, "p") == ""
    logs.first(on("a:1", uid="1"), EARLY, "other")
    assert logs.first(on("a:1", uid="2"), LATE, "p") == ""
