"""The short form of the fault campaign: a handful of faults on the sample model, 50 rows a second.

`make chaos` runs the long form; docs/chaos.md tells what is in it.
"""

from pathlib import Path

import pytest

from chaos.campaign import Plan, campaign
from chaos.verdict import DAMAGES

pytestmark = [pytest.mark.component, pytest.mark.timeout(900)]

FAULTS = ("engine-takeover", "pod", "freeze-pod", "broker-coordinator", "cut-zookeeper")


def test_a_handful_of_faults_costs_no_output(tmp_path: Path) -> None:
    """Nothing is lost, doubled, out of order or wrong, and every acknowledged commit is there."""
    plan = Plan(FAULTS, count=1, rate=50, model="ha", seed=11)
    (outcome,) = campaign(plan, tmp_path, print)
    assert outcome.error == ""
    assert outcome.verdict.problems == []
    assert {kind: outcome.verdict.damage[kind] for kind in DAMAGES} == dict.fromkeys(DAMAGES, 0)
    assert [strike.name for strike in outcome.strikes] != []
    assert sum(strike.false_failovers for strike in outcome.strikes) == 0
    assert outcome.verdict.rows_out == outcome.verdict.rows_in > 0
    assert outcome.verdict.acknowledged > 0
    assert sum(strike.takeovers for strike in outcome.strikes) >= 2


def test_two_sources_and_a_clock_stay_in_step(tmp_path: Path) -> None:
    """Engines that read two topics and a clock find the same, also after they were killed."""
    plan = Plan(("engine", "pair"), count=1, rate=50, model="two", seed=12)
    (outcome,) = campaign(plan, tmp_path, print)
    assert outcome.error == ""
    assert outcome.verdict.problems == []
    assert outcome.verdict.damage.total() == 0
    assert outcome.verdict.rows_out > outcome.verdict.rows_in > 0
