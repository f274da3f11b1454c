"""The operator is upgraded with Helm, and goes back, while rows flow."""

import json

import pytest

from day_two.live import SYSTEM, Live, retag
from tools import ROOT
from tools.offline_cluster import clients

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(1800)]

IN_SPACE = ("--namespace", SYSTEM, "--wait", "--timeout", "5m")


def revision() -> str:
    """Return the release's number in Helm."""
    listed = json.loads(clients.helm("list", "--namespace", SYSTEM, "-o", "json"))
    return next(str(one["revision"]) for one in listed if one["name"] == "espha")


def upgrade(**values: str) -> None:
    """Upgrade the release as docs/how-to/upgrade.md does."""
    given = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    chart = ROOT / "charts" / "espha"
    clients.helm("upgrade", "espha", chart, "--reuse-values", *IN_SPACE, *given, timeout=320)


def images(live: Live) -> set[str]:
    """Return the images of the deployment's pods, those that go included."""
    chosen = "app.kubernetes.io/instance=demo"
    listed = json.loads(live.kubectl("get", "pods", "-l", chosen, "-o", "json"))["items"]
    return {one["spec"]["containers"][0]["image"] for one in listed}


def test_an_upgrade_is_held_back_made_and_taken_back(live: Live) -> None:
    """With `Manual` no pod restarts; then, and on the way back, there is one take-over each."""
    live.wait_ready()
    first, pods, old = revision(), live.pods(), images(live)
    new = retag("upgraded")
    offered = {
        "images.engine": new["engines"],
        "images.kafka": new["kafka"],
        "images.zookeeper": new["zookeeper"],
    }
    try:
        upgrade(imagePolicy="Manual", **offered)
        live.wait(lambda: live.condition("UpToDate").get("reason") == "KeptByPolicy", "it waits")
        live.wait_ready()
        assert live.pods() == pods
        before = live.take_overs
        upgrade(imagePolicy="OnOperatorUpgrade")
        live.wait(lambda: images(live) == {*new.values()}, "all pods have the new images")
        live.wait_ready()
        assert live.condition("UpToDate")["status"] == "True"
        assert live.take_overs == before + 1
    finally:
        clients.helm("rollback", "espha", first, *IN_SPACE, timeout=320)
    live.wait(lambda: images(live) == old, "all pods have the old images")
    live.wait_ready()
    assert live.take_overs == before + 2
    said = clients.kubectl("-n", SYSTEM, "logs", "deployment/espha-operator", "--tail=-1")
    assert "Traceback" not in said


def test_nothing_was_lost_or_aborted_in_all_that(live: Live) -> None:
    """The last test of this module: the rows end."""
    report = live.verify()
    print(report)
    assert report["ok"], report["complaints"]
    counts = live.counts()
    assert counts["output"][0] == counts["output"][1] == report["sent"]
