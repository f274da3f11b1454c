"""An upgrade of the operator: who takes its images, when, and who stays as it is."""

import pytest

from espha_operator.api.images import ImagePolicy, Images
from espha_operator.api.status import UsedImages
from espha_operator.reconcile import turns
from espha_operator.reconcile.turns import Turns
from espha_operator.reconcile.upgrades import Offer, build, decide
from espha_operator.resources import common
from espha_operator.status.facts import Upgrade

NEW = Offer(Images(engine_image="engine:2", kafka_image="kafka:2", zookeeper_image="zoo:2"), "b2")
OLD = UsedImages(engine="engine:1", kafka="kafka:1", zookeeper="zoo:1", build="b1", inputs="i1")


def chosen(
    policy: ImagePolicy, last: UsedImages | None = OLD, inputs: str = "i1", turn: bool = True
) -> Upgrade:
    return decide(NEW, policy, last, inputs, lambda: turn)


def test_a_new_deployment_takes_what_there_is() -> None:
    for policy in ("OnOperatorUpgrade", "Manual"):
        assert chosen(policy, None, turn=False) == Upgrade(NEW.used("i1"))


def test_on_operator_upgrade_takes_everything_in_its_turn() -> None:
    assert chosen("OnOperatorUpgrade") == Upgrade(NEW.used("i1"))
    waits = chosen("OnOperatorUpgrade", turn=False)
    assert (waits.used, waits.held, waits.waits) == (OLD, True, "WaitsForTurn")


def test_manual_keeps_everything() -> None:
    kept = chosen("Manual")
    assert (kept.used, kept.held, kept.waits) == (OLD, True, "KeptByPolicy")


def test_what_users_ask_for_is_not_held_back() -> None:
    """Pods restart anyway: on upgrade with the new images at once, manually with the old ones."""
    assert chosen("OnOperatorUpgrade", inputs="i2", turn=False) == Upgrade(NEW.used("i2"))
    manual = chosen("Manual", inputs="i2")
    assert (manual.used.engine, manual.used.build, manual.held) == ("engine:1", "b2", False)
    again = chosen("Manual", manual.used, inputs="i2")
    assert (again.used, again.held, again.waits) == (manual.used, False, "KeptByPolicy")


def test_other_templates_with_the_same_images_are_an_upgrade_too() -> None:
    last = NEW.used("i1").model_copy(update={"build": "b1"})
    assert chosen("Manual", last).held
    assert chosen("Manual", last, inputs="i2") == Upgrade(NEW.used("i2"))
    assert chosen("OnOperatorUpgrade", last, turn=False).held


def test_the_same_operator_asks_for_no_turn() -> None:
    def never() -> bool:
        raise AssertionError("nothing is to be upgraded")

    for policy in ("OnOperatorUpgrade", "Manual"):
        last = NEW.used("i1")
        assert decide(NEW, policy, last, "i2", never) == Upgrade(NEW.used("i2"))


def test_the_build_depends_on_templates_and_not_on_images(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = build(Images())
    assert build(Images(engine_image="engine:9", kafka_image="k:9")) == usual
    assert len(usual) == 16
    monkeypatch.setattr(common, "USER", 10002)
    assert build(Images()) != usual


class _Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def test_one_deployment_rolls_at_a_time_with_a_pause_after_each(clock: _Clock) -> None:
    made = Turns(30, clock)
    assert not made.may_roll("a")
    clock.now += 30
    assert made.may_roll("a")
    assert made.may_roll("a")
    assert not made.may_roll("b")
    clock.now += 59
    made.tell("a", rolling=True)
    assert not made.may_roll("b")
    made.tell("a", rolling=False)
    clock.now += 29
    assert not made.may_roll("b")
    assert not made.may_roll("a")
    clock.now += 1
    assert made.may_roll("b")
    assert not made.may_roll("a")


def test_after_a_restart_a_roll_out_under_way_is_known_before_the_next_begins(
    clock: _Clock,
) -> None:
    made = Turns(1, clock)
    clock.now += 5
    made.tell("under way", rolling=True)
    clock.now += 20
    made.tell("under way", rolling=True)
    assert not made.may_roll("next")
    made.tell("under way", rolling=False)
    clock.now += 1
    assert made.may_roll("next")


def test_nobody_waits_for_the_dead_or_for_ever(clock: _Clock) -> None:
    made = Turns(10, clock)
    clock.now += 10
    assert made.may_roll("deleted")
    clock.now += turns.SILENT + 1
    assert not made.may_roll("b")
    clock.now += 10
    assert made.may_roll("b")
    begun = clock.now
    for _ in range(int(turns.LONGEST / 30)):
        clock.now += 30
        made.tell("b", rolling=True)
        assert made.may_roll("c") == (clock.now - begun >= turns.LONGEST)


def test_without_a_delay_all_roll_at_once(clock: _Clock) -> None:
    made = Turns(0, clock)
    assert made.may_roll("a")
    assert made.may_roll("b")
