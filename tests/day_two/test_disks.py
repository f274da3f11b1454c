"""Volumes that grow, and servers that lose theirs, while rows flow."""

import pytest

from day_two.live import EXPANDABLE, Live

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(1800)]
BROKERS = ("pods", "-l", "app.kubernetes.io/component=kafka")


def test_volumes_grow_and_no_pod_restarts(expandable: Live) -> None:
    uids = "{.items[*].metadata.uid}"
    before = expandable.told(uids, *BROKERS)
    old = expandable.told("{.metadata.uid}", "statefulset", "demo-kafka")
    expandable.patch({"kafka": {"storage": {"size": "2Gi", "storageClassName": EXPANDABLE}}})
    expandable.wait(lambda: expandable.template_size("kafka") == "2Gi", "the template has grown")
    claims = ("pvc", "-l", "app.kubernetes.io/component=kafka")
    asked = expandable.told("{.items[*].spec.resources.requests.storage}", *claims)
    assert asked.split() == ["2Gi"] * 3
    assert expandable.told("{.metadata.uid}", "statefulset", "demo-kafka") != old
    expandable.wait_ready()
    assert expandable.told(uids, *BROKERS) == before


def test_a_class_that_cannot_is_said(expandable: Live) -> None:
    expandable.patch({"zookeeper": {"storage": {"size": "2Gi"}}})
    expandable.wait(lambda: expandable.events("CannotGrow"), "it is refused")
    assert expandable.condition("VolumesFit")["reason"] == "CannotGrow"
    assert len(expandable.events("CannotGrow")) == 1


@pytest.mark.parametrize("pod", ["demo-kafka-1", "demo-zookeeper-2", "demo-engine-0"])
def test_a_pod_is_rebuilt_with_an_empty_volume(expandable: Live, pod: str) -> None:
    claim = claim_of(pod)
    before = expandable.told("{.metadata.uid}", *claim)
    done = len(expandable.events("Replaced"))
    expandable.kubectl("annotate", "espha", "demo", f"espha.dev/replace={pod}")
    rebuilt(expandable, pod, before)
    assert len(expandable.events("Replaced")) == done + 1


@pytest.mark.parametrize("pod", ["demo-kafka-2", "demo-zookeeper-0", "demo-engine-1"])
def test_a_volume_that_is_lost_is_filled_again(expandable: Live, pod: str) -> None:
    """Nobody has said so before: claim and pod are gone at once."""
    expandable.wait(expandable.is_whole, "all is whole")
    claim = claim_of(pod)
    before = expandable.told("{.metadata.uid}", *claim)
    expandable.kubectl("delete", *claim, "--wait=false")
    expandable.kubectl("delete", "pod", pod, "--wait=false")
    rebuilt(expandable, pod, before)


def claim_of(pod: str) -> tuple[str, str]:
    """Return the claim of a pod, as kubectl takes it."""
    return "pvc", f"{'snapshots' if 'engine' in pod else 'data'}-{pod}"


def rebuilt(live: Live, pod: str, before: str) -> None:
    """Wait until a pod serves on another volume than before, and nothing is missing."""
    live.wait(
        lambda: live.told("{.metadata.uid}", *claim_of(pod)) not in ("", before),
        "there is another volume",
    )
    live.wait(lambda: live.is_ready(pod), f"{pod} is ready")  # it may not be there yet
    live.wait(live.is_whole, "all is whole again")


def test_nothing_was_lost(expandable: Live) -> None:
    report = expandable.verify()
    assert report["ok"], report
