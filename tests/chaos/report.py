"""A campaign's results: each strike as JSON, and a summary as table, Markdown and picture."""

import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from chaos.campaign import Outcome, Plan
from chaos.faults import FAULTS
from chaos.summary import Earlier, Figures, Summary, total
from chaos.verdict import DAMAGES, Strike, Verdict

VERSION = 3
HEADINGS = (
    "fault", "rows/s", "count", "successor p50 ms", "p99 ms", "gap p50 ms", "p99 ms", "max ms",
    "later max ms", "back p50 ms", "max ms", "in sync p50 s", "max s", "take-overs",
    "false failovers", "quiet", "quiet p50 ms", "quiet p99 ms",
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
        entry["in_sync_s"] = round(strike.ended - strike.struck, 3) if strike.ended else None
        for moment in ("struck", "ended", "seen", "back"):
            del entry[moment]
        entry["stolen"] = round(strike.stolen, 3)
        for time_ms in ("gap_ms", "later_ms", "back_ms", "successor_ms"):
            if entry[time_ms] is not None:
                entry[time_ms] = round(entry[time_ms], 1)
        strikes.append(entry)
    return {
        **asdict(source),
        "model": plan.model,
        "rate": plan.rate,
        "seed": plan.seed,
        "minutes": round(outcome.minutes, 2),
        "soak": outcome.soak_minutes,
        "soak_gap_ms": round(outcome.soak.longest_ms),
        "soak_quiet_gap_ms": round(outcome.soak.quiet_ms),
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
    """Write a report file, whole or not at all; a line for each run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    lines = ",\n".join(json.dumps(run) for run in runs)
    fresh.write_text(f'{{"version": {VERSION}, "runs": [\n{lines}\n]}}\n')
    fresh.replace(path)


def rows(summary: Summary) -> list[list[str]]:
    """Return the table: a line for each fault and rate, soak, and model; for everything."""
    lines = [_line(fault, rate, of, of.damage) for fault, rate, of in summary.groups()]
    for soak in sorted(summary.soaks, key=lambda each: each.rate):
        line = ["-"] * len((*HEADINGS, *DAMAGES))
        line[:2] = f"none, {soak.minutes:.0f} min, model {soak.model}", f"{soak.rate:g}"
        line[HEADINGS.index("max ms")] = str(soak.gap_ms)
        line[HEADINGS.index("quiet p99 ms")] = str(soak.quiet_gap_ms)
        line[HEADINGS.index("false failovers")] = str(soak.false_failovers)
        lines.append(line)
    trials = sorted(summary.trials, key=lambda each: each.model)
    for each in trials if len(trials) > 1 else ():
        own = total(part for part in summary.figures if part.model == each.model)
        lines.append(_line(f"model {each.model}", None, own, each.damage))
    damage = sum((each.damage for each in trials), Counter[str]())
    return [*lines, _line("together", None, total(summary.figures), damage)]


def _line(name: str, rate: float | None, of: Figures, damage: Counter[str]) -> list[str]:
    return [
        name,
        "-" if rate is None else f"{rate:g}",
        str(len(of.gaps_ms)),
        *_shares(of.successors_ms, 0.5, 0.99),
        *_shares(of.gaps_ms, 0.5, 0.99, 1),
        str(of.later_ms) if of.gaps_ms else "-",
        *_shares(of.backs_ms, 0.5, 1),
        *_shares(of.in_sync_s, 0.5, 1, digits=1),
        str(of.takeovers),
        str(of.false_failovers),
        str(len(of.quiet_gaps_ms)),
        *_shares(of.quiet_gaps_ms, 0.5, 0.99),
        *(str(damage[each]) for each in DAMAGES),
    ]


def _shares(values: Sequence[float], *shares: float, digits: int = 0) -> list[str]:
    """Return percentiles of ascending values; dashes where there are none."""
    return [f"{percentile(values, share):.{digits}f}" if values else "-" for share in shares]


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all do not exceed."""
    place = max(0, -(-len(ordered) * share // 1) - 1)
    return ordered[int(place)]


def table(summary: Summary) -> Table:
    """Return the table for a terminal, of the columns that have a value; damage is red."""
    lines = rows(summary)
    headings = (*HEADINGS, *DAMAGES)
    used = [place for place in range(len(headings)) if any(line[place] != "-" for line in lines)]
    shown = Table(title="Longest gap around each fault, and what a reader lost")
    for place in used:
        shown.add_column(headings[place], justify="right" if place else "left")
    for line in lines:
        shown.add_row(*(_coloured(line[place], place) for place in used))
    return shown


def _coloured(cell: str, place: int) -> str:
    return cell if place < len(HEADINGS) or cell in ("0", "-") else f"[red]{cell}[/]"


def markdown(summary: Summary) -> str:
    """Return the page of docs/: the table and how it was made."""
    headings = [*HEADINGS, *DAMAGES]
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows(summary)]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    trials = sum(each.trials for each in summary.trials)
    outputs = sum(each.rows_out for each in summary.trials)
    acknowledged = sum(each.acknowledged for each in summary.trials)
    return (
        f"# Results of the fault campaign\n\n{text}\n"
        f"{trials} trials, {outputs} outputs, {acknowledged} acknowledged commits, made by\n\n"
        + "".join(f"    {command}\n" for command in summary.made_by)
        + "".join(f"\n{_sentence(each)}\n" for each in summary.earlier)
    )


def _sentence(earlier: Earlier) -> str:
    parts = [f"{earlier.strikes} strikes"]
    if earlier.faults:
        parts[0] += f" ({', '.join(earlier.faults)})"
    if earlier.soak_minutes:
        parts.append(f"{earlier.soak_minutes:.0f} minutes without a fault")
    if earlier.rows_out:
        parts += [f"{earlier.rows_out} outputs", f"{earlier.acknowledged} acknowledged commits"]
    return (
        f"Before, until commit {earlier.until}: {', '.join(parts)}; damage {earlier.damage}, false "
        f"failovers {earlier.false_failovers}. The figures are in the history of "
        "`docs/chaos/summary.json`."
    )


def picture(summary: Summary, path: Path) -> None:
    """Draw the distribution of the gaps: for each fault, the share of faults up to a gap."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot
    from PIL import Image

    rates = summary.rates() or [0.0]
    figure, every = pyplot.subplots(
        len(rates), figsize=(10, 6 * len(rates)), layout="constrained", squeeze=False
    )
    for rate, axes in zip(rates, every[:, 0], strict=True):
        for name, at_rate, figures in summary.groups():
            if at_rate == rate:
                gaps = [max(1, each) for each in figures.gaps_ms]
                shares = [(number + 1) / len(gaps) for number in range(len(gaps))]
                style = ("-", "--", ":")[list(FAULTS).index(name) // 10 % 3]
                label = f"{name} ({len(gaps)})"
                axes.step(gaps, shares, style, where="post", marker=".", label=label)
        axes.set(
            title=f"{rate:g} rows a second",
            xscale="log",
            xlabel="longest gap that a read_committed reader saw, ms",
            ylabel="share of faults",
            ylim=(0, 1.02),
        )
        axes.grid(which="both", alpha=0.25)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=90, metadata={"Software": None})
    pyplot.close(figure)
    # as many colours as curves need: a quarter of the size
    Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)
