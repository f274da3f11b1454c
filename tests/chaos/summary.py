"""What campaigns add up to: small enough to be committed, and exact where a percentile is."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from chaos.faults import FAULTS
from tools.stolen import QUIET


class Figures(BaseModel):
    """All strikes of one fault, on one model, at one rate.

    Attributes:
        gaps_ms, successors_ms, in_sync_s: one value a strike that has it, in ascending order.
        quiet_gaps_ms: those of strikes from which the host has stolen next to nothing.
        backs_ms: from the return of a server to the next output, where output stood still.
        later_ms: the longest of all.
        judged: strikes in trials that came to their end.
    """

    fault: str
    model: str
    rate: float
    judged: int = 0
    takeovers: int = 0
    false_failovers: int = 0
    damage: Counter[str] = Field(default_factory=Counter)
    later_ms: int = 0
    gaps_ms: list[int] = Field(default_factory=list)
    quiet_gaps_ms: list[int] = Field(default_factory=list)
    successors_ms: list[int] = Field(default_factory=list)
    backs_ms: list[int] = Field(default_factory=list)
    in_sync_s: list[float] = Field(default_factory=list)

    def add(self, other: "Figures") -> None:
        """Take the strikes of another one in."""
        self.judged += other.judged
        self.takeovers += other.takeovers
        self.false_failovers += other.false_failovers
        self.damage += other.damage
        self.later_ms = max(self.later_ms, other.later_ms)
        self.gaps_ms = sorted(self.gaps_ms + other.gaps_ms)
        self.quiet_gaps_ms = sorted(self.quiet_gaps_ms + other.quiet_gaps_ms)
        self.successors_ms = sorted(self.successors_ms + other.successors_ms)
        self.backs_ms = sorted(self.backs_ms + other.backs_ms)
        self.in_sync_s = sorted(self.in_sync_s + other.in_sync_s)


class Trials(BaseModel):
    """All trials of one model."""

    model: str
    trials: int = 0
    rows_out: int = 0
    acknowledged: int = 0
    damage: Counter[str] = Field(default_factory=Counter)

    def add(self, other: "Trials") -> None:
        """Take other trials in."""
        self.trials += other.trials
        self.rows_out += other.rows_out
        self.acknowledged += other.acknowledged
        self.damage += other.damage


class Soak(BaseModel):
    """All load without a fault, of one model at one rate.

    Attributes:
        gap_ms: the longest one.
        quiet_gap_ms: the longest one of seconds from which the host has stolen next to nothing.
    """

    model: str
    rate: float
    minutes: float
    gap_ms: int
    quiet_gap_ms: int
    false_failovers: int

    def add(self, other: "Soak") -> None:
        """Take another soak in."""
        self.minutes += other.minutes
        self.quiet_gap_ms = max(self.quiet_gap_ms, other.quiet_gap_ms)
        self.gap_ms = max(self.gap_ms, other.gap_ms)
        self.false_failovers += other.false_failovers


_Part = TypeVar("_Part", Figures, Trials, Soak)


SoakOf = tuple[str, float]
"""A soak's model and rate."""


class Earlier(BaseModel):
    """What campaigns on earlier code came to; their figures are in the history of this file.

    Attributes:
        until: the last commit of that code.
        faults: whose strikes these are; empty: all that there were.
        soak_minutes: so much load without a fault.
        rows_out, acknowledged: 0 where other figures of the same trials stayed, which count them.
        damage: all that was lost, double, out of order or wrong, and commits that were missing.
    """

    until: str
    faults: list[str] = Field(default_factory=list)
    strikes: int
    soak_minutes: float = 0.0
    rows_out: int = 0
    acknowledged: int = 0
    damage: int
    false_failovers: int


class Summary(BaseModel):
    """Trials of any number of campaigns.

    Attributes:
        made_by: commands with their commits.
        wrong: a sentence for each thing that must not be.
    """

    version: Literal[1] = 1
    made_by: list[str] = Field(default_factory=list)
    wrong: list[str] = Field(default_factory=list)
    earlier: list[Earlier] = Field(default_factory=list)
    trials: list[Trials] = Field(default_factory=list)
    soaks: list[Soak] = Field(default_factory=list)
    figures: list[Figures] = Field(default_factory=list)

    def add(self, run: dict[str, Any]) -> None:
        """Add one trial, as `report.run_of` holds it."""
        self.made_by = sorted({*self.made_by, f"{run['command']} (commit {run['commit']})"})
        self.wrong += wrong(run)
        _add(self.trials, _trial(run), "model")
        if run["soak"]:
            soak = Soak(
                model=run["model"],
                rate=run["rate"],
                minutes=run["soak"],
                gap_ms=run["soak_gap_ms"],
                quiet_gap_ms=run["soak_quiet_gap_ms"],
                false_failovers=run["false_failovers"],
            )
            _add(self.soaks, soak, "model", "rate")
        for strike in run["strikes"]:
            _add(self.figures, _figures(run, strike), "fault", "model", "rate")

    def fold(self, until: str, faults: Collection[str] = (), soak: SoakOf | None = None) -> None:
        """Put figures into `earlier`, as those of the code until that commit, to make them anew.

        Those of these faults and of this soak; without either, all of them. Trials and commands
        stay for as long as figures do: nobody knows which fault an output belongs to. What is wrong
        stays in any case. Without a strike or a soak there is nothing to put away.
        """
        everything = not faults and soak is None
        figures = [each for each in self.figures if everything or each.fault in faults]
        soaks = [each for each in self.soaks if everything or (each.model, each.rate) == soak]
        if not figures and not soaks:
            return
        self.figures = [each for each in self.figures if each not in figures]
        self.soaks = [each for each in self.soaks if each not in soaks]
        damage = sum((each.damage for each in figures), Counter[str]())
        folded = Earlier(
            until=until,
            faults=[] if everything else sorted({each.fault for each in figures}),
            strikes=sum(len(each.gaps_ms) for each in figures),
            soak_minutes=sum(each.minutes for each in soaks),
            damage=damage.total(),
            false_failovers=sum(each.false_failovers for each in figures)
            + sum(each.false_failovers for each in soaks),
        )
        if not self.figures and not self.soaks:
            folded.rows_out = sum(each.rows_out for each in self.trials)
            folded.acknowledged = sum(each.acknowledged for each in self.trials)
            folded.damage = sum(each.damage.total() for each in self.trials)
            self.made_by, self.trials = [], []
        self.earlier.append(folded)

    def counts(self) -> Counter[str]:
        """Return how often each fault has struck, in trials that came to their end."""
        total = Counter[str]()
        for each in self.figures:
            total[each.fault] += each.judged
        return +total

    def rates(self) -> list[float]:
        """Return all rates at which something struck."""
        return sorted({each.rate for each in self.figures})

    def groups(self) -> Iterator[tuple[str, float, Figures]]:
        """Yield fault, rate and figures over all models, for all that have struck."""
        for fault in FAULTS:
            for rate in self.rates():
                parts = [each for each in self.figures if (each.fault, each.rate) == (fault, rate)]
                if parts:
                    yield fault, rate, total(parts)


def total(parts: Iterable[Figures]) -> Figures:
    """Return all strikes of some figures together."""
    whole = Figures(fault="", model="", rate=0)
    for part in parts:
        whole.add(part)
    return whole


def of(runs: Iterable[dict[str, Any]]) -> Summary:
    """Return the summary of trials."""
    summary = Summary()
    for run in runs:
        summary.add(run)
    return summary


def load(path: Path) -> Summary:
    """Return the summary that a file holds; an empty one where there is no file."""
    if not path.exists():
        return Summary()
    try:
        return Summary.model_validate_json(path.read_text())
    except ValidationError as error:
        raise SystemExit(f"{path} is not a summary of this version: {error}") from None


def save(path: Path, summary: Summary) -> None:
    """Write a summary, whole or not at all; a line for each part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = []
    for name in ("made_by", "wrong"):
        texts = Summary(**{name: getattr(summary, name)}).model_dump_json(include={name})
        fields.append(texts[1:-1].replace('","', '",\n"'))
    for name in ("earlier", "trials", "soaks", "figures"):
        lines = ",\n".join(each.model_dump_json() for each in getattr(summary, name))
        fields.append(f'"{name}":[\n{lines}\n]')
    fresh = path.with_suffix(".new")
    fresh.write_text(f'{{"version":{summary.version},\n' + ",\n".join(fields) + "\n}\n")
    fresh.replace(path)


def wrong(run: dict[str, Any]) -> list[str]:
    """Return a sentence for each thing in a trial that must not be; empty when all is well."""
    where = f"{run['started']} (seed {run['seed']})"
    found = [f"{where}: {run['error']}"] if run["error"] else []
    found += [f"{where}: {count} {damage}" for damage, count in run["damage"].items() if count]
    found += [f"{where}: {problem}" for problem in run["problems"]]
    if run["soak"] and run["false_failovers"]:
        found.append(f"{where}: {run['false_failovers']} false failovers in the soak")
    return found


def _trial(run: dict[str, Any]) -> Trials:
    return Trials(
        model=run["model"],
        trials=1,
        rows_out=run["rows_out"],
        acknowledged=run["acknowledged"],
        damage=+Counter(run["damage"]),
    )


def _figures(run: dict[str, Any], strike: dict[str, Any]) -> Figures:
    in_sync = strike["in_sync_s"]
    gaps = _measured(strike["gap_ms"])
    return Figures(
        fault=strike["name"],
        model=run["model"],
        rate=run["rate"],
        judged=not run["error"],
        takeovers=strike["takeovers"],
        false_failovers=strike["false_failovers"],
        damage=+Counter(strike["damage"]),
        later_ms=round(strike["later_ms"]),
        gaps_ms=gaps,
        quiet_gaps_ms=gaps if strike["stolen"] <= QUIET else [],
        successors_ms=_measured(strike["successor_ms"]),
        backs_ms=_measured(strike.get("back_ms")),
        in_sync_s=[] if in_sync is None else [round(in_sync, 1)],
    )


def _measured(time_ms: float | None) -> list[int]:
    return [] if time_ms is None else [round(time_ms)]


def _add(parts: list[_Part], new: _Part, *names: str) -> None:
    """Add to the part that agrees in those fields, or as a part of its own."""
    for part in parts:
        if all(getattr(part, name) == getattr(new, name) for name in names):
            part.add(new)
            return
    parts.append(new)
