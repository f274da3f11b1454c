"""Roll-outs of all components while rows flow: one pod at a time, one take-over, nothing lost."""

import pytest

from day_two.live import Live, retag

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(1800)]

ALL = {"zookeeper": 3, "kafka": 3, "engine": 3}


def components(names: list[str]) -> list[str]:
    """Return the components of pods, in order, each one once."""
    return list(dict.fromkeys(name.split("-")[1] for name in names))


@pytest.fixture
def flowing(live: Live) -> Live:
    """The deployment, ready."""
    live.wait_ready()
    return live


def test_new_images_of_all_components_cost_one_take_over(flowing: Live) -> None:
    """The components follow each other, never two pods are away, and the active engine is last."""
    before, restarts, active = flowing.take_overs, flowing.restarts(), flowing.active
    asked = len(flowing.events("HandingOver"))
    seen = flowing.watch(**ALL)
    flowing.patch({component: {"image": name} for component, name in retag("next").items()})
    flowing.wait(lambda: len(seen.replaced) == 9 and not seen.away, "all pods are new")
    flowing.wait_ready()
    seen.stop()
    assert components(seen.replaced) == list(ALL)
    assert seen.replaced[-1] == active
    assert len(seen.most) == 1, f"at the same time: {set(seen.most)}"
    assert flowing.take_overs == before + 1
    assert len(flowing.events("HandingOver")) == asked + 1
    assert flowing.restarts() - restarts == {}


@pytest.mark.parametrize("component", ["kafka", "zookeeper"])
def test_servers_alone_cost_no_take_over(flowing: Live, component: str) -> None:
    """One of them is away at a time, and no engine is restarted or loses the lead."""
    before, restarts, pods = flowing.take_overs, flowing.restarts(), flowing.pods()
    seen = flowing.watch(**ALL)
    flowing.patch({component: {"image": retag(f"only-{component}")[component]}})
    flowing.wait(lambda: len(seen.replaced) == 3 and not seen.away, "all servers are new")
    flowing.wait_ready()
    seen.stop()
    assert components(seen.replaced) == [component]
    assert len(seen.most) == 1, f"at the same time: {set(seen.most)}"
    assert flowing.take_overs == before
    assert flowing.restarts() - restarts == {}
    now = flowing.pods()
    assert sorted(name for name in pods if pods[name][0] != now[name][0]) == [
        f"demo-{component}-{number}" for number in range(3)
    ]


def test_a_broker_that_is_out_of_sync_holds_the_next_one_back(flowing: Live) -> None:
    """Its port is open, and it is ready; the roll-out waits all the same, and says for what."""
    victim = "demo-kafka-1"
    before = flowing.pods()
    flowing.signal(victim, "STOP")
    try:
        flowing.patch({"kafka": {"image": retag("after")["kafka"]}})
        flowing.wait(
            lambda: (
                "demo-kafka-1 has not joined Kafka" in flowing.says()
                or "copies are missing or behind" in flowing.says()
                or "demo-kafka-1 does not serve yet" in flowing.says()
                or "a broker does not say who the controllers are" in flowing.says()
            ),
            "the status says what it waits for",
        )
        assert flowing.pods() == before
    finally:
        flowing.signal(victim, "CONT")
    seen_before = {name: uid for name, (uid, _) in before.items() if "kafka" in name}
    flowing.wait(
        lambda: all(flowing.pods().get(name, ("",))[0] != uid for name, uid in seen_before.items()),
        "all brokers are new",
    )
    flowing.wait_ready()


def test_an_operator_that_is_killed_goes_on_where_it_was(flowing: Live) -> None:
    """It remembers nothing that it needs: one pod at a time, one take-over."""
    before = flowing.take_overs
    seen = flowing.watch(**ALL)
    flowing.patch({component: {"image": name} for component, name in retag("last").items()})
    for count in (1, 4, 7):
        flowing.kill_operator(
            lambda: len(seen.replaced) >= count,  # noqa: B023
            f"{count} pods are new",
        )
    flowing.wait(lambda: len(seen.replaced) == 9 and not seen.away, "all pods are new")
    flowing.wait_ready()
    seen.stop()
    assert components(seen.replaced) == list(ALL)
    assert len(seen.most) == 1, f"at the same time: {set(seen.most)}"
    assert flowing.take_overs == before + 1


def test_scaling_down_hands_over_first(flowing: Live) -> None:
    """The highest number is active, and goes; an Event says who takes over."""
    if flowing.active != "demo-engine-2":
        flowing.kubectl("annotate", "espha", "demo", "espha.dev/switchover-to=demo-engine-2")
    flowing.wait(lambda: flowing.active == "demo-engine-2", "the last engine is active")
    before, asked = flowing.take_overs, len(flowing.events("HandingOver"))
    flowing.kubectl("scale", "espha/demo", "--replicas=2")
    flowing.wait(lambda: "demo-engine-2" not in flowing.pods(), "the last engine has gone")
    flowing.wait_ready()
    told = flowing.events("HandingOver")[asked:]
    assert told == [
        "demo-engine-2 is active and too many: it hands over to demo-engine-0 and goes."
    ]
    assert (flowing.active, flowing.take_overs) == ("demo-engine-0", before + 1)
    flowing.kubectl("scale", "espha/demo", "--replicas=3")
    flowing.wait_ready()


def test_nothing_was_lost_or_aborted_in_all_that(flowing: Live) -> None:
    """The last test of this module: the rows end."""
    report = flowing.verify()
    print(report)
    assert report["ok"], report["complaints"]
    counts = flowing.counts()
    assert counts["output"][0] == report["sent"]
    assert counts["output"][0] == counts["output"][1]
    assert counts["order"][0] == counts["order"][1]
