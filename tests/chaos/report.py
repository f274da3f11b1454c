"""A campaign's results: JSON that adds up over runs, a table, Markdown, and a picture."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from chaos.campaign import Outcome, Plan
from chaos.faults import KINDS
from chaos.verdict import DAMAGES, Strike, Verdict

VERSION = 1
HEADINGS = (
    "fault", "count", "p50 ms", "p90 ms", "p99 ms", "max ms", "take-overs", "false failovers",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """Where a run comes from."""

    command: str
    commit: str
    started: str


def run_of(plan: Plan, source: Source, outcome: Outcome) -> dict[str, Any]:
    """Return one trial as JSON holds it."""
    strikes = []
    for strike in outcome.strikes:
        entry = _plain(strike)
        entry["in_step_s"] = round(strike.ended - strike.struck, 3) if strike.ended else None
        for moment in ("struck", "ended", "seen"):
            del entry[moment]
        entry["gap_ms"] = round(strike.gap_ms, 1)
        strikes.append(entry)
    return {
        **asdict(source),
        "model": plan.model,
        "rate": plan.rate,
        "seed": plan.seed,
        "minutes": round(outcome.minutes, 2),
        "soak": plan.soak_minutes > 0,
        "error": outcome.error,
        "false_failovers": outcome.false_failovers,
        **_plain(outcome.verdict),
        "strikes": strikes,
    }


def _plain(judged: Strike | Verdict) -> dict[str, Any]:
    return {**vars(judged), "damage": dict(judged.damage)}


def load(path: Path) -> list[dict[str, Any]]:
    """Return the runs that a report file holds; none where there is no file."""
    if not path.exists():
        return []
    report = json.loads(path.read_text())
    if report["version"] != VERSION:
        raise SystemExit(f"{path}: version {report['version']}, not {VERSION}; name another file")
    return list(report["runs"])


def save(path: Path, runs: list[dict[str, Any]]) -> None:
    """Write a report file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"version": VERSION, "runs": runs}, indent=1) + "\n")
    fresh.replace(path)


def wrong(runs: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each thing that must not be; empty when all is well."""
    found = []
    for run in runs:
        where = f"{run['started']} (seed {run['seed']})"
        found += [f"{where}: {run['error']}"] if run["error"] else []
        found += [f"{where}: {count} {kind}" for kind, count in run["damage"].items() if count]
        found += [f"{where}: {problem}" for problem in run["problems"]]
        if run["soak"] and run["false_failovers"]:
            found.append(f"{where}: {run['false_failovers']} false failovers in the soak")
    return found


def rows(runs: list[dict[str, Any]]) -> list[list[str]]:
    """Return the table: a line for each kind of fault, one for soaks, and one for everything."""
    lines = []
    for name in KINDS:
        strikes = [each for run in runs for each in run["strikes"] if each["name"] == name]
        if strikes:
            damage = sum((Counter(each["damage"]) for each in strikes), Counter[str]())
            lines.append(_line(name, strikes, damage))
    total = sum((Counter(run["damage"]) for run in runs), Counter[str]())
    everything = [each for run in runs for each in run["strikes"]]
    quiet = sum(run["false_failovers"] for run in runs)
    minutes = sum(run["minutes"] for run in runs if run["soak"])
    if minutes:
        lines.append([f"none, {minutes:.0f} min", *["-"] * 6, str(quiet), *["-"] * len(DAMAGES)])
    lines.append(_line("all", everything, total))
    return lines


def _line(name: str, strikes: list[dict[str, Any]], damage: Counter[str]) -> list[str]:
    gaps = sorted(each["gap_ms"] for each in strikes)
    figures = [f"{percentile(gaps, share):.0f}" if gaps else "-" for share in (0.5, 0.9, 0.99, 1)]
    return [
        name,
        str(len(strikes)),
        *figures,
        str(sum(each["takeovers"] for each in strikes)),
        str(sum(each["false_failovers"] for each in strikes)),
        *(str(damage[kind]) for kind in DAMAGES),
    ]


def percentile(ordered: list[float], share: float) -> float:
    """Return the smallest value that at least `share` of all do not exceed."""
    place = max(0, -(-len(ordered) * share // 1) - 1)
    return ordered[int(place)]


def table(runs: list[dict[str, Any]]) -> Table:
    """Return the table for a terminal; damage is red."""
    shown = Table(title="Longest gap around each fault, and what a reader lost")
    for place, heading in enumerate((*HEADINGS, *DAMAGES)):
        shown.add_column(heading, justify="right" if place else "left")
    for line in rows(runs):
        cells = line[: len(HEADINGS)]
        for cell in line[len(HEADINGS) :]:
            cells.append(cell if cell in ("0", "-") else f"[red]{cell}[/]")
        shown.add_row(*cells)
    return shown


def markdown(runs: list[dict[str, Any]]) -> str:
    """Return the table and how it was made, for docs/."""
    headings = [*HEADINGS, *DAMAGES]
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows(runs)]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    commands = sorted({f"{run['command']} (commit {run['commit']})" for run in runs})
    outputs = sum(run["rows_out"] for run in runs)
    acknowledged = sum(run["acknowledged"] for run in runs)
    return (
        f"{text}\n{len(runs)} trials, {outputs} outputs, {acknowledged} acknowledged commits, "
        "made by\n\n" + "".join(f"    {command}\n" for command in commands)
    )


def picture(runs: list[dict[str, Any]], path: Path) -> None:
    """Draw the distribution of the gaps: for each kind, the share of faults up to a gap."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 6), layout="constrained")
    for place, name in enumerate(KINDS):
        strikes = [each for run in runs for each in run["strikes"] if each["name"] == name]
        gaps = sorted(max(1.0, each["gap_ms"]) for each in strikes)
        if gaps:
            shares = [(number + 1) / len(gaps) for number in range(len(gaps))]
            style = ("-", "--", ":")[place // 10 % 3]
            axes.step(gaps, shares, style, where="post", marker=".", label=f"{name} ({len(gaps)})")
    axes.set(
        xscale="log",
        xlabel="longest gap that a read_committed reader saw, ms",
        ylabel="share of faults",
        ylim=(0, 1.02),
    )
    axes.grid(which="both", alpha=0.25)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
