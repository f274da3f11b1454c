"""The committed summary: it adds up as the raw trials do, and stays small."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer

from chaos import __main__ as command
from chaos import report, summary
from chaos.campaign import Outcome, Plan
from chaos.reader import Arrival
from chaos.report import Source
from chaos.verdict import Strike, Verdict

ROOT = Path(__file__).parents[3]
FAULTS = ("engine", "standby", "switchover")


def run(number: int, **changes: Any) -> dict[str, Any]:
    """Return a trial of five strikes with figures of chance."""
    chance = Random(number)
    strikes = []
    for _ in range(5):
        strike = Strike(chance.choice(FAULTS), "any", "engine-0", "", 0, 10, 5, 20, 1)
        strike.gap_ms, strike.later_ms = chance.uniform(50, 900), chance.uniform(0, 900)
        strike.ended = 10 + chance.uniform(0.2, 30)
        strike.successor_ms = chance.choice([None, chance.uniform(50, 900)])
        strikes.append(strike)
    outcome = Outcome(strikes, Verdict(rows_out=100, acknowledged=10), **changes)
    plan = Plan(FAULTS, 5, chance.choice([10, 200]), chance.choice(["ha", "two"]), number)
    return report.run_of(plan, Source("make chaos", f"c{number}", "now"), outcome)


def ordered(whole: summary.Summary) -> Any:
    told = whole.model_dump()
    for part in ("trials", "soaks", "figures"):
        told[part].sort(key=lambda each: str(sorted((k, str(v)) for k, v in each.items())))
    return told


def test_summaries_add_up_as_raw_trials_do(tmp_path: Path) -> None:
    """Each campaign finds what the ones before have left, and no strike of theirs."""
    runs = [run(number) for number in range(20)]
    path = tmp_path / "docs" / "summary.json"
    for start in range(0, 20, 4):
        kept = summary.load(path)
        for each in runs[start : start + 4]:
            kept.add(each)
        summary.save(path, kept)
    assert ordered(summary.load(path)) == ordered(summary.of(runs))
    assert report.rows(summary.load(path)) == report.rows(summary.of(runs))
    assert report.markdown(summary.load(path)) == report.markdown(summary.of(runs))


def test_a_strike_behind_which_nothing_came_is_no_short_gap() -> None:
    """A trial that breaks down in it says so; a gap of 0 ms would hide it among the best."""
    strikes = [Strike("engine", "any", "engine-0", "", 0, 10, 5)]
    strikes[0].measure([Arrival(9.9, "t", 0, "i:0:0", "")])
    told = report.run_of(
        Plan(("engine",), 1, 200, "ha", 1),
        Source("make chaos", "c1", "now"),
        Outcome(strikes, Verdict(), error="nothing has moved"),
    )
    kept = summary.of([told])
    assert [(each.gaps_ms, each.quiet_gaps_ms) for each in kept.figures] == [([], [])]
    assert kept.wrong == ["now (seed 1): nothing has moved"]
    report.markdown(kept)


def test_percentiles_are_those_of_all_strikes() -> None:
    runs = [run(number) for number in range(20)]
    gaps = sorted(each["gap_ms"] for one in runs for each in one["strikes"])
    together = report.rows(summary.of(runs))[-1]
    expected = [report.percentile(gaps, share) for share in (0.5, 0.99, 1)]
    assert together[5:8] == [f"{value:.0f}" for value in expected]


def test_what_is_wrong_stays_wrong(tmp_path: Path) -> None:
    damaged = run(1, soak_minutes=2.0, false_failovers=1)
    damaged["damage"] = dict(Counter(lost=2))
    path = tmp_path / "summary.json"
    summary.save(path, summary.of([damaged, run(2)]))
    kept = summary.load(path)
    assert kept.wrong == [
        "now (seed 1): 2 lost",
        "now (seed 1): 1 false failovers in the soak",
    ]
    assert {line[0]: line[18] for line in report.rows(kept)}["together"] == "2"


def test_figures_of_older_code_are_put_away(tmp_path: Path) -> None:
    """Their sums stay, and `--fill` counts only what has struck since."""
    runs = [run(number) for number in range(3)]
    runs[1]["damage"] = dict(Counter(lost=2))
    kept = summary.of(runs)
    kept.fold("c2")
    kept.fold("c3")  # nothing has struck since
    path = tmp_path / "summary.json"
    summary.save(path, kept)
    kept = summary.load(path)
    assert kept.earlier == [
        summary.Earlier(
            until="c2",
            strikes=15,
            rows_out=300,
            acknowledged=30,
            damage=2,
            false_failovers=sum(s["false_failovers"] for each in runs for s in each["strikes"]),
        )
    ]
    assert (kept.counts(), kept.made_by) == ({}, [])
    assert kept.wrong == ["now (seed 1): 2 lost"], "what is wrong stays wrong"
    assert "until commit c2: 15 strikes" in report.markdown(kept)
    kept.add(runs[0])
    assert kept.counts() == summary.of(runs[:1]).counts()
    assert len(kept.earlier) == 1


def test_figures_of_some_faults_or_of_a_soak_are_put_away_alone(tmp_path: Path) -> None:
    """Outputs stay where they are counted, until nothing is left of their trials."""
    kept = summary.of([run(number, soak_minutes=3.0) for number in range(3)])
    counts, soaks = kept.counts(), [(each.model, each.rate) for each in kept.soaks]
    some = sorted(counts)[0]
    kept.fold("c2", [some])
    assert kept.earlier[0].faults == [some]
    assert (kept.earlier[0].strikes, kept.earlier[0].rows_out) == (counts[some], 0)
    assert kept.counts() == {name: counts[name] for name in counts if name != some}
    assert f"until commit c2: {counts[some]} strikes ({some}); damage 0" in report.markdown(kept)
    kept.fold("c3", ["slow"])  # it has not struck
    kept.fold("c3", soak=soaks[0])
    assert [(each.model, each.rate) for each in kept.soaks] == soaks[1:]
    assert (kept.earlier[1].strikes, kept.earlier[1].soak_minutes > 0) == (0, True)
    assert kept.made_by
    path = tmp_path / "summary.json"
    summary.save(path, kept)
    kept = summary.load(path)
    kept.fold("c4")
    assert (kept.earlier[2].faults, kept.earlier[2].rows_out) == ([], 300)
    assert sum(each.strikes for each in kept.earlier) == sum(counts.values())
    assert (kept.made_by, kept.trials) == ([], [])


def test_another_version_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text(json.dumps({"version": 99}))
    with pytest.raises(SystemExit, match=r"summary\.json is not a summary of this version"):
        summary.load(path)


def test_the_committed_summary_is_small_and_its_table_is_fresh() -> None:
    """`make chaos CHAOS="--docs --show"` writes table and picture anew."""
    folder = ROOT / "docs" / "chaos"
    kept = summary.load(folder / "summary.json")
    assert (folder / "results.md").read_text() == report.markdown(kept)
    texts = [path for path in folder.iterdir() if path.suffix != ".png"]
    assert sum(path.stat().st_size for path in texts) < 100_000


def test_a_campaign_writes_raw_data_and_adds_to_the_summary(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Twice with --docs: the raw report is the last campaign's, the summary is of both."""
    strike = Strike("engine", "any", "engine-0", "", 0, 10, 5, 20, 1, 0, 100.0, 300, 80)
    outcome = Outcome([strike], Verdict(rows_out=100))
    monkeypatch.setattr(command, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(command, "_outcomes", lambda plan: [outcome])
    monkeypatch.setattr("sys.argv", ["chaos", "--docs"])
    raw = tmp_path / "out" / "chaos.json"

    def campaign(**options: Any) -> int:
        usual = {
            "faults": "engine", "count": 1, "rate": 200, "model": "ha", "seed": 1, "leg": 50,
            "soak": 0, "warm_up": 0, "output": raw, "merge": False, "fill": False, "docs": True,
            "show": False,
        }  # fmt: skip
        with pytest.raises(typer.Exit) as ended:
            command.main(**{**usual, **options})
        return ended.value.exit_code

    assert [campaign(), campaign()] == [0, 0]
    assert len(report.load(raw)) == 1
    kept = summary.load(tmp_path / "docs" / "summary.json")
    assert (kept.counts(), kept.trials[0].trials) == ({"engine": 2}, 2)
    assert (tmp_path / "docs" / "results.md").read_text() == report.markdown(kept)
    assert {path.name for path in raw.parent.iterdir()} == {"chaos.json"}
    assert (tmp_path / "docs" / "results.png").stat().st_size > 0
    assert campaign(fold="c1", show=True) == 0
    kept = summary.load(tmp_path / "docs" / "summary.json")
    assert ([each.strikes for each in kept.earlier], kept.counts()) == ([2], {})
    with pytest.raises(typer.BadParameter, match="needs --docs"):
        command.main(fold="c1")
