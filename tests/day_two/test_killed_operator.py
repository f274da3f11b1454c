"""The operator is killed in the middle of each thing that it does, and the next one goes on."""

import threading

import pytest

from day_two.live import EXPANDABLE, SOURCE, Live, drain, retag
from espha.model import model_digest
from espha.reader import read_project

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(1800)]

OLD = SOURCE.read_text(encoding="utf-8")
NEW = OLD.replace('"windowLength">20<', '"windowLength">5<')
ALL = {"zookeeper": 3, "kafka": 3, "engine": 3}
UNDER_WAY = ("InShadow", "Switching", "Following")


@pytest.fixture
def flowing(expandable: Live) -> Live:
    """The deployment, ready, with nothing missing."""
    expandable.wait_ready()
    expandable.wait(expandable.is_whole, "all is whole")
    return expandable


def digest(xml: str) -> str:
    return model_digest(read_project(xml))


def goes_over(live: Live, xml: str, before: int) -> None:
    """Kill the operator while the model changes; one take-over comes of it all the same."""

    def reason() -> str:
        return str(live.condition("ModelRolledOut").get("reason"))

    live.kill_operator(lambda: reason() in UNDER_WAY, "the model changes")
    label = f"HA_Project@{digest(xml)[:4]}"
    live.wait(
        lambda: reason() == "RolledOut" and label in live.condition("ModelRolledOut")["message"],
        f"all engines run {label}",
    )
    live.wait_ready()
    assert live.take_overs == before + 1


def test_while_the_model_changes(flowing: Live) -> None:
    before = flowing.take_overs
    flowing.patch({"model": {"inline": NEW}})
    goes_over(flowing, NEW, before)


def test_while_the_model_is_rolled_back(flowing: Live) -> None:
    """The sums in the end are those of a run without the other model."""
    before = flowing.take_overs
    flowing.kubectl("annotate", "espha", "demo", f"espha.dev/rollback={digest(OLD)[:12]}")
    goes_over(flowing, OLD, before)
    flowing.patch({"model": {"inline": OLD}})
    flowing.kubectl("annotate", "espha", "demo", "espha.dev/rollback-")
    flowing.wait_ready()
    assert flowing.take_overs == before + 1


def test_while_volumes_grow(flowing: Live) -> None:
    pods = flowing.pods()
    flowing.patch({"kafka": {"storage": {"size": "2Gi", "storageClassName": EXPANDABLE}}})
    claims = ("pvc", "-l", "app.kubernetes.io/component=kafka")
    path = "{.items[*].spec.resources.requests.storage}"
    flowing.kill_operator(lambda: "2Gi" in flowing.told(path, *claims), "a claim is larger")
    flowing.wait(lambda: flowing.template_size("kafka") == "2Gi", "the template has grown")
    flowing.wait_ready()
    assert flowing.told(path, *claims).split() == ["2Gi"] * 3
    assert flowing.pods() == pods


def test_while_a_broker_is_replaced(flowing: Live) -> None:
    """It is replaced once: the request names the volume that was meant."""
    claim = ("pvc", "data-demo-kafka-1")
    before, done = flowing.told("{.metadata.uid}", *claim), len(flowing.events("Replaced"))
    flowing.kubectl("annotate", "espha", "demo", "espha.dev/replace=demo-kafka-1")
    uid = f"@{before}"

    def begun() -> bool:
        asked = flowing.resource()["metadata"].get("annotations", {}).get("espha.dev/replace", "")
        return str(asked).endswith(uid) or flowing.told("{.metadata.uid}", *claim) != before

    flowing.kill_operator(begun, "the request names the volume")
    flowing.wait(
        lambda: flowing.told("{.metadata.uid}", *claim) not in ("", before), "another volume"
    )
    after = flowing.told("{.metadata.uid}", *claim)
    flowing.wait(lambda: flowing.is_ready("demo-kafka-1"), "it is ready")
    flowing.wait(flowing.is_whole, "all is whole again")
    flowing.wait(lambda: len(flowing.events("Replaced")) > done, "an Event says so")
    assert flowing.told("{.metadata.uid}", *claim) == after


def test_while_a_node_is_drained(flowing: Live) -> None:
    """The budgets are the operator's: the next server goes when nothing is missing, as ever."""
    before, pods = flowing.take_overs, flowing.pods()
    node = pods[flowing.active][1]
    there = {name for name, (_, place) in pods.items() if place == node}

    def some_are_gone() -> bool:
        now = flowing.pods()
        return any(now.get(name) != pods[name] for name in there)

    draining = threading.Thread(target=drain, args=(node,))
    draining.start()
    try:
        flowing.kill_operator(some_are_gone, "a pod has left the node")
    finally:
        draining.join()
    flowing.wait(lambda: flowing.take_overs > before, "the take-over is told")
    flowing.wait_ready()
    flowing.wait(flowing.is_whole, "all is whole again")
    now = flowing.pods()
    assert all(now[name][0] != pods[name][0] for name in there)
    assert flowing.take_overs == before + 1


@pytest.mark.parametrize("component", ["kafka", "zookeeper"])
def test_while_servers_are_rolled(flowing: Live, component: str) -> None:
    """One of them is away at a time, and no engine notices."""
    before = flowing.take_overs
    seen = flowing.watch(**ALL)
    flowing.patch({component: {"image": retag(f"killed-{component}")[component]}})
    for count in (1, 2):
        flowing.kill_operator(
            lambda: len(seen.replaced) >= count,  # noqa: B023
            f"{count} pods are new",
        )
    flowing.wait(lambda: len(seen.replaced) == 3 and not seen.away, "all servers are new")
    flowing.wait_ready()
    seen.stop()
    assert {name.split("-")[1] for name in seen.replaced} == {component}
    assert len(seen.most) == 1, f"at the same time: {set(seen.most)}"
    assert flowing.take_overs == before


def test_nothing_was_lost_in_all_that(flowing: Live) -> None:
    """The last test of this module: the rows end."""
    report = flowing.verify()
    print(report)
    assert report["ok"], report["complaints"]
    assert flowing.counts()["output"][0] == report["sent"]
