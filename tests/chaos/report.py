"""A campaign's results: JSON that adds up over runs, a table, Markdown, and a picture."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from chaos.campaign import Outcome, Plan
from chaos.faults import KINDS
from chaos.verdict import DAMAGES, Strike, Verdict

VERSION = 2
HEADINGS = (
    "fault", "rows/s", "count", "successor p50 ms", "p99 ms", "gap p50 ms", "p99 ms", "max ms",
    "later max ms", "in sync p50 s", "max s", "take-overs", "false failovers",
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
        entry["later_ms"] = round(strike.later_ms, 1)
        if strike.successor_ms is not None:
            entry["successor_ms"] = round(strike.successor_ms, 1)
        strikes.append(entry)
    return {
        **asdict(source),
        "model": plan.model,
        "rate": plan.rate,
        "seed": plan.seed,
        "minutes": round(outcome.minutes, 2),
        "soak": outcome.soak_minutes,
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


def counts(runs: list[dict[str, Any]]) -> Counter[str]:
    """Return how often each kind has struck, in runs that came to their end."""
    return Counter(strike["name"] for run in runs if not run["error"] for strike in run["strikes"])


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
    """Return the table: a line for each kind of fault and rate, soak, and model; for everything."""
    lines = []
    for name, rate, strikes in _groups(runs):
        damage = sum((Counter(each["damage"]) for each in strikes), Counter[str]())
        lines.append(_line(name, rate, strikes, damage))
    for rate in _rates(runs):
        soaks = [run for run in runs if run["soak"] and run["rate"] == rate]
        if soaks:
            minutes = sum(run["soak"] for run in soaks)
            quiet = sum(run["false_failovers"] for run in soaks)
            filler = ["-"] * (len(HEADINGS) - 3)
            lines.append([f"none, {minutes:.0f} min", f"{rate:g}", *filler, str(quiet)])
            lines[-1] += ["-"] * len(DAMAGES)
    models = sorted({run["model"] for run in runs})
    for model in models if len(models) > 1 else ():
        lines.append(_all_of(f"model {model}", [run for run in runs if run["model"] == model]))
    return [*lines, _all_of("together", runs)]


def _all_of(name: str, runs: list[dict[str, Any]]) -> list[str]:
    damage = sum((Counter(run["damage"]) for run in runs), Counter[str]())
    return _line(name, None, [each for run in runs for each in run["strikes"]], damage)


def _rates(runs: list[dict[str, Any]]) -> list[float]:
    return sorted({run["rate"] for run in runs})


def _groups(runs: list[dict[str, Any]]) -> Iterator[tuple[str, float, list[dict[str, Any]]]]:
    """Yield kind, rate and strikes, for all of which there are any."""
    for name in KINDS:
        for rate in _rates(runs):
            at_rate = (each for run in runs if run["rate"] == rate for each in run["strikes"])
            strikes = [each for each in at_rate if each["name"] == name]
            if strikes:
                yield name, rate, strikes


def _line(
    name: str, rate: float | None, strikes: list[dict[str, Any]], damage: Counter[str]
) -> list[str]:
    figures = [
        *_shares(strikes, "successor_ms", 0.5, 0.99),
        *_shares(strikes, "gap_ms", 0.5, 0.99, 1),
        *_shares(strikes, "later_ms", 1),
        *_shares(strikes, "in_step_s", 0.5, 1, digits=1),
    ]
    return [
        name,
        "-" if rate is None else f"{rate:g}",
        str(len(strikes)),
        *figures,
        str(sum(each["takeovers"] for each in strikes)),
        str(sum(each["false_failovers"] for each in strikes)),
        *(str(damage[kind]) for kind in DAMAGES),
    ]


def _shares(strikes: list[dict[str, Any]], name: str, *shares: float, digits: int = 0) -> list[str]:
    """Return percentiles of a figure, of those strikes that have it."""
    values = sorted(each[name] for each in strikes if each[name] is not None)
    return [f"{percentile(values, share):.{digits}f}" if values else "-" for share in shares]


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

    rates = sorted({rate for _, rate, _ in _groups(runs)}) or _rates(runs)
    figure, every = pyplot.subplots(
        len(rates), figsize=(10, 6 * len(rates)), layout="constrained", squeeze=False
    )
    for rate, axes in zip(rates, every[:, 0], strict=True):
        for name, at_rate, strikes in _groups(runs):
            if at_rate == rate:
                gaps = sorted(max(1.0, each["gap_ms"]) for each in strikes)
                shares = [(number + 1) / len(gaps) for number in range(len(gaps))]
                style = ("-", "--", ":")[list(KINDS).index(name) // 10 % 3]
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
    figure.savefig(path, dpi=90, metadata={"Software": None})
    pyplot.close(figure)
