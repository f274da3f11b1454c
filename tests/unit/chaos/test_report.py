"""Gaps, percentiles, the table, and the exit that depends on them."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from chaos import cluster, report, summary
from chaos.__main__ import faults_of
from chaos.campaign import Outcome, Plan
from chaos.reader import Arrival
from chaos.report import Source, percentile
from chaos.soak import Gaps, Seconds
from chaos.verdict import Strike, Verdict, _Epochs, gap
from support.servers import java_hash, wait_until

PLAN = Plan(("engine", "standby"), 3, 200, "ha", 7, leg=4)


def arrivals(*times: float) -> list[Arrival]:
    return [Arrival(time, "t", n, f"i:{n}:0", "") for n, time in enumerate(times)]


def test_a_gap_counts_when_any_part_of_it_lies_within() -> None:
    seen = arrivals(0, 5, 5.1, 5.4, 5.5, 9)
    assert gap(seen, 5.05, 5.45) == pytest.approx(0.3)
    assert gap(seen, 4, 5.45) == pytest.approx(5)
    assert gap(seen, 6, 7) == pytest.approx(3.5)
    assert gap(seen, 10, 11) is None


def test_what_comes_later_is_told_apart_from_what_the_fault_did() -> None:
    strike = Strike("engine", "any", "engine-0", "", 0, struck=10, seen=0, ended=30)
    strike.measure(arrivals(9.9, 10.3, 10.4, 14, 14.1, 16, 16.1, 31, 40))
    assert (strike.gap_ms, strike.later_ms) == pytest.approx((3600, 14_900))
    strike = Strike("engine", "any", "engine-0", "", 0, struck=10, seen=0, ended=11)
    strike.measure(arrivals(9.9, 10.3, 10.4, 14))
    assert (strike.gap_ms, strike.later_ms) == pytest.approx((3600, 0))


def test_output_that_stood_still_is_measured_from_the_return_of_a_server() -> None:
    strike = Strike("two-brokers", "any", "kafka-0", "", 0, struck=10, seen=0, ended=40, back=25)
    strike.measure(arrivals(9.9, 27.5, 27.6))
    assert strike.back_ms == pytest.approx(2500)
    strike = Strike("two-brokers", "any", "kafka-0", "", 0, struck=10, seen=0, ended=40, back=25)
    strike.measure(arrivals(9.9, 12.5, 24.9, 25.1))
    assert strike.back_ms is None, "others had gone on without it"


def test_a_successor_is_who_commits_in_a_newer_epoch() -> None:
    order = [
        json.dumps({"epoch": epoch, "inputs": [["in:1", start, start + 2]]})
        for start, epoch in ((0, 3), (2, 3), (4, 5), (6, 5))
    ]
    outputs = [Arrival(10 + n / 10, "out", n, f"in:1:{n}:0", "") for n in range(8)]
    killed = Strike("engine", "any", "engine-0", "", 0, struck=10.15, seen=2, ended=10.9)
    killed.find_successor(outputs, _Epochs(order))
    assert killed.successor_ms == pytest.approx(250)
    alone = Strike("standby", "any", "engine-1", "", 0, struck=10.45, seen=2, ended=10.9)
    alone.find_successor([*outputs, Arrival(10.8, "out", 8, "clock:9", "")], _Epochs(order))
    assert alone.successor_ms is None


def test_percentiles_are_values_that_were_measured() -> None:
    hundred = [float(n) for n in range(1, 101)]
    assert [percentile(hundred, share) for share in (0.5, 0.9, 0.99, 1)] == [50, 90, 99, 100]
    assert [percentile([3.0], share) for share in (0.5, 0.99, 1)] == [3, 3, 3]


def test_legs_hold_every_fault_in_the_order_of_the_seed() -> None:
    legs = list(PLAN.legs())
    assert [len(leg) for leg in legs] == [4, 2]
    assert sorted(name for leg in legs for name in leg) == ["engine"] * 3 + ["standby"] * 3
    assert legs == list(PLAN.legs())


def run(**changes: Any) -> dict[str, Any]:
    strikes = [
        Strike("engine", "any", "engine-0", "", 0, 10, 5, 20, 1, 0, gap_ms, 300, 80)
        for gap_ms in (100.0, 200.0)
    ]
    outcome = Outcome(strikes, minutes=1.5)
    for name, value in changes.items():
        setattr(outcome, name, value)
    return report.run_of(PLAN, Source("make chaos", "abc", "now"), outcome)


def test_runs_add_up_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "build" / "chaos.json"
    damaged = run(verdict=Verdict(damage=Counter(lost=2)))
    damaged["strikes"][0]["damage"] = {"lost": 1}
    report.save(path, [damaged])
    (damaged,) = report.load(path)
    assert len(summary.of([damaged]).wrong) == 1
    assert {line[0]: line[18] for line in report.rows(summary.of([damaged]))} == {
        "engine": "1",
        "together": "2",
    }
    report.save(path, [run()])
    runs = [*report.load(path), run()]
    lines = {line[0]: line for line in report.rows(summary.of(runs))}
    assert lines["engine"][1:8] == ["200", "4", "80", "80", "100", "200", "200"]
    assert lines["engine"][8:11] == ["300", "-", "-"]
    assert lines["engine"][11:15] == ["10.0", "10.0", "4", "0"]
    assert lines["engine"][15:18] == ["4", "100", "200"]
    assert lines["together"][1:3] == ["-", "4"]
    assert summary.of(runs).wrong == []
    assert "| engine | 200 | 4 | 80 |" in report.markdown(summary.of(runs))
    report.picture(summary.of(runs), tmp_path / "gaps.png")
    assert (tmp_path / "gaps.png").read_bytes().startswith(b"\x89PNG")


def test_strikes_without_a_processor_have_figures_of_their_own() -> None:
    """What was stolen from them is no time of espha's."""
    starved = run()
    starved["strikes"][1]["stolen"] = 0.3
    (line, _) = report.rows(summary.of([starved]))
    assert line[5:8] == ["100", "200", "200"]
    assert line[15:18] == ["1", "100", "100"]


def test_what_a_report_holds_is_not_struck_again() -> None:
    had = summary.of([run(), run(error="broke off")]).counts()
    assert had == {"engine": 2}
    rest = [name for leg in replace(PLAN, had=had).legs() for name in leg]
    assert sorted(rest) == ["engine", "standby", "standby", "standby"]
    assert list(replace(PLAN, faults=()).legs()) == []


def test_a_soak_needs_no_faults() -> None:
    assert list(replace(PLAN, faults=(), soak_minutes=0.5).legs()) == [[]]


def test_each_rate_and_each_soak_has_a_line() -> None:
    slow, soak = run(), run(strikes=[], false_failovers=1)
    slow["rate"], soak["soak"] = 10, 30
    soak["soak_gap_ms"], soak["soak_quiet_gap_ms"] = 180, 120
    lines = report.rows(summary.of([run(), slow, soak]))
    assert [line[:3] for line in lines] == [
        ["engine", "10", "2"],
        ["engine", "200", "2"],
        ["none, 30 min, model ha", "200", "-"],
        ["together", "-", "4"],
    ]
    told = dict(zip(report.HEADINGS[::-1], lines[2][: len(report.HEADINGS)][::-1], strict=True))
    assert (told["max ms"], told["quiet p99 ms"], told["false failovers"]) == ("180", "120", "1")


def test_a_gap_is_quiet_when_every_second_of_it_is() -> None:
    seconds = Seconds()
    seconds.ends, seconds.shares = [1.0, 2.0, 3.0], [0.0, 0.4, 0.01]
    found = seconds.gaps([0.1, 0.3, 0.8, 1.2, 1.9, 2.3, 2.4, 2.7])
    assert (found.longest_ms, found.quiet_ms) == pytest.approx((700, 500))
    assert seconds.gaps([]) == Gaps()
    with Seconds() as measured:
        wait_until(lambda: bool(measured.ends), 60, "a second")
    assert 0 <= measured.shares[0] <= 1


def test_each_model_has_a_line_where_there_are_several() -> None:
    other = run()
    other["model"] = "two"
    names = [line[0] for line in report.rows(summary.of([run(), other]))]
    assert names == ["engine", "model ha", "model two", "together"]


@pytest.mark.parametrize("kind", ["lost", "double", "out of order", "wrong", "acks missing"])
def test_each_damage_is_wrong(kind: str) -> None:
    damaged = run()
    damaged["damage"] = {kind: 2}
    assert len(summary.of([damaged]).wrong) == 1
    console = Console(width=250)
    with console.capture() as shown:
        console.print(report.table(summary.of([damaged])))
    assert kind in shown.get()


def test_an_error_and_a_problem_are_wrong() -> None:
    assert summary.of([run(error="not in sync")]).wrong != []
    damaged = run()
    damaged["problems"] = ["sequence 3 follows 1"]
    assert summary.of([damaged]).wrong != []


def test_the_coordinator_is_found_as_kafka_finds_it() -> None:
    """Values of Java's String.hashCode without the sign; its smallest number counts as 0."""
    assert java_hash("hello") == 99_162_322
    assert java_hash("polygenelubricants") == 0


def test_what_verify_found_in_a_cluster_is_damage() -> None:
    report_of_verify = {
        "ok": False, "rows_in": 9, "rows_out": 8, "lost": 1, "double": 2, "disorder": 3,
        "foreign": 4, "wrong_sums": 5, "wrong_values": 6, "complaints": ["row 3 is missing"],
    }  # fmt: skip
    found = cluster.verdict(report_of_verify)
    assert found.damage == {"lost": 1, "double": 2, "out of order": 3, "wrong": 15}
    assert found.problems == ["row 3 is missing"]
    assert cluster.verdict({**report_of_verify, "ok": True}).problems == []


def test_faults_in_a_cluster_are_named_alone() -> None:
    with pytest.raises(typer.BadParameter, match="operator has a deployment of its own"):
        faults_of("operator,engine", soak=0)
    assert "operator" not in faults_of("all", soak=0)
