"""Two deployments on one Kafka must not write the same order log."""

from dataclasses import replace
from typing import Any

import pytest

from espha_operator.api.deployment import Deployment
from espha_operator.reconcile.order_logs import PATIENCE, OrderLogs
from unit.operator import samples


def on(*servers: str, uid: str, name: str = "d") -> Deployment:
    kafka = {"external": {"bootstrapServers": list(servers)}} if servers else {}
    return replace(samples.deployment(kafka=kafka), uid=uid, name=name)


def resource(uid: str, created: str, reason: str = "Valid") -> dict[str, Any]:
    """Return a deployment as an operator finds it when it starts."""
    conditions = [{"type": "ModelValid", "reason": reason}]
    meta = {"uid": uid, "creationTimestamp": f"2026-01-{created}T00:00:00Z"}
    return {"metadata": meta, "status": {"conditions": conditions}}


def test_who_has_an_order_log_keeps_it() -> None:
    logs = OrderLogs()
    assert logs.claim(on("a:1", uid="2", name="old"), "p") == ""
    assert logs.claim(on("a:1", uid="1", name="new"), "p") == "shop/old"
    assert logs.claim(on("a:1", uid="2", name="old"), "p") == ""


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
    logs.claim(on("a:1", "b:1", uid="1"), "p")
    assert bool(logs.claim(on(*servers, uid="2"), prefix)) == meets


def test_one_that_has_gone_or_moved_stands_in_nobodys_way() -> None:
    logs = OrderLogs()
    logs.claim(on("a:1", uid="1"), "p")
    logs.drop("1")
    assert logs.claim(on("a:1", uid="2"), "p") == ""
    assert logs.claim(on("a:1", uid="1"), "other") == ""
    assert logs.claim(on("a:1", uid="3"), "other") == "shop/d"


def test_one_whose_move_is_refused_keeps_what_it_has() -> None:
    """Its engines still write there."""
    logs = OrderLogs()
    logs.claim(on("a:1", uid="1"), "p")
    logs.claim(on("a:1", uid="2"), "q")
    assert logs.claim(on("a:1", uid="1"), "q") == "shop/d"
    assert logs.claim(on("a:1", uid="3"), "p") == "shop/d"


def test_an_operator_that_starts_asks_who_was_there_first() -> None:
    """Those that were refused come last, though an older resource may have been changed since."""
    logs = OrderLogs()
    logs.expect([resource("1", "03"), resource("2", "02"), resource("3", "01", "Conflict")])
    first, second, third = (on("a:1", uid=uid) for uid in ("2", "1", "3"))
    assert [logs.must_wait(one) for one in (third, second, first)] == [True, True, False]
    logs.seen("2")
    assert [logs.must_wait(one) for one in (third, second)] == [True, False]
    logs.drop("1")
    assert not logs.must_wait(third)


def test_nobody_waits_who_is_new_or_has_servers_of_its_own() -> None:
    logs = OrderLogs()
    logs.expect([resource("1", "01"), resource("2", "02")])
    assert not logs.must_wait(on("a:1", uid="9"))
    assert not logs.must_wait(on(uid="2"))


def test_one_that_never_has_its_turn_holds_nobody_up_for_ever() -> None:
    now = [0.0]
    logs = OrderLogs(lambda: now[0])
    logs.expect([resource("1", "01"), resource("2", "02")])
    assert logs.must_wait(on("a:1", uid="2"))
    now[0] = PATIENCE
    assert not logs.must_wait(on("a:1", uid="2"))
