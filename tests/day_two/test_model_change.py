"""A model is changed and rolled back while rows flow: one take-over each, and nothing is lost."""

import pytest

from day_two.live import SOURCE, Live
from espha.model import model_digest
from espha.reader import read_project
from support.model_change import refusing

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(1800)]

OLD = SOURCE.read_text(encoding="utf-8")
NEW = OLD.replace('"windowLength">20<', '"windowLength">5<')
SAME = OLD.replace("<windows>", "<!-- another word --> <windows>")
REFUSING = refusing(OLD)


def digest(xml: str) -> str:
    return model_digest(read_project(xml))


def runs(live: Live, xml: str) -> bool:
    """Tell whether the model leads, and all engines run it."""
    rolled = live.condition("ModelRolledOut")
    label = f"HA_Project@{digest(xml)[:4]}"
    return rolled.get("status") == "True" and label in rolled["message"]


def test_a_comment_restarts_nothing(live: Live) -> None:
    live.wait_ready()
    before = live.pods()
    live.patch({"model": {"inline": SAME}})
    live.wait_ready()
    assert live.pods() == before


def test_a_changed_model_costs_one_take_over(live: Live) -> None:
    before = live.take_overs
    live.patch({"model": {"inline": NEW}})
    live.wait(lambda: runs(live, NEW), "the new model leads")
    live.wait_ready()
    assert live.take_overs == before + 1


def test_a_roll_back_goes_on_with_the_old_state(live: Live) -> None:
    before = live.take_overs
    live.kubectl("annotate", "espha", "demo", f"espha.dev/rollback={digest(OLD)[:12]}")
    live.wait(lambda: runs(live, OLD), "the old model leads")
    live.wait_ready()
    assert live.take_overs == before + 1
    live.patch({"model": {"inline": OLD}})
    live.kubectl("annotate", "espha", "demo", "espha.dev/rollback-")
    live.wait_ready()
    assert live.take_overs == before + 1


def test_a_model_that_refuses_each_row_never_leads(live: Live) -> None:
    """It is tried in the shadow, and stays there; then the old one has all engines again."""
    live.wait_ready()
    before, active, pods = live.take_overs, live.active, live.pods()
    live.patch({"model": {"inline": REFUSING}})

    def has_failed() -> bool:
        """Tell whether it has refused a hundred rows and more, and why that holds it back."""
        rolled = live.condition("ModelRolledOut")
        many = "00 or more dead letters" in rolled.get("message", "")
        return rolled.get("reason") == "ShadowFailed" and many

    live.wait(has_failed, "the new model fails in the shadow")
    assert (live.active, live.take_overs) == (active, before)
    live.patch({"model": {"inline": OLD}})
    live.wait_ready()
    assert runs(live, OLD)
    assert (live.active, live.take_overs) == (active, before)
    assert live.pods()[active] == pods[active]


def test_nothing_was_lost_and_the_old_model_says_what_it_would_have_said(live: Live) -> None:
    """The last test of this module: the rows end. The sums are those of a run without a change."""
    report = live.verify()
    print(report)
    assert report["ok"], report["complaints"]
    assert report["models"] == 2
