"""Runs a campaign: trials of at most so many faults, each judged before the next begins."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from chaos.faults import FAULTS
from chaos.site import SYNCED, Site, running
from chaos.soak import Gaps, Seconds
from chaos.trial import Trial
from chaos.verdict import Strike, Verdict, verdict
from tools.stolen import Stolen

Say = Callable[[str], None]
_LOOK_S = 0.05
_SETTLED_S = 0.3
_ALONE_S = 1.0


@dataclass(frozen=True)
class Plan:
    """What a campaign does.

    Attributes:
        faults: names, each of which strikes `count` times, in random order.
        rate: input rows a second.
        leg: faults on one deployment, before it is judged and a fresh one begins.
        soak_minutes: so long full load before the first fault; each take-over in it is false.
        warm_up_s: how long the load runs before the first fault: servers' JVMs compile then; with
            0 they compile simply, and soon.
        had: how often each has struck before; so much less often it strikes now.
        minutes: no leg begins after so long; 0: all of them do.
        ending: once it is set, the strike under way is the last one, and its leg is judged.
    """

    faults: tuple[str, ...]
    count: int
    rate: float
    model: str
    seed: int
    leg: int = 50
    soak_minutes: float = 0.0
    warm_up_s: float = 0.0
    had: Mapping[str, int] = field(default_factory=dict)
    minutes: float = 0.0
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def needs(self) -> set[str]:
        """What deployments must have for these faults."""
        return {FAULTS[name].needs for name in self.faults if FAULTS[name].needs}

    def legs(self) -> Iterator[list[str]]:
        """Yield the names of the faults of each trial."""
        names = [name for name in self.faults for _ in range(self.count - self.had.get(name, 0))]
        Random(self.seed).shuffle(names)
        for start in range(0, max(self.soak_minutes > 0, len(names)), self.leg):
            yield names[start : start + self.leg]


@dataclass
class Outcome:
    """One trial, judged.

    Attributes:
        soak: the longest times between two outputs in the soak.
        error: what ended it too early; "" when nothing did.
        false_failovers: take-overs that no fault explains, in the soak and behind the last fault.
    """

    strikes: list[Strike] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    minutes: float = 0.0
    soak_minutes: float = 0.0
    soak: Gaps = field(default_factory=Gaps)
    false_failovers: int = 0
    error: str = ""


def campaign(plan: Plan, folder: Path, say: Say) -> Iterator[Outcome]:
    """Run all legs; each yields what came of it, also one that broke down.

    Behind one that broke down the servers are new: nobody knows what it has left of the old ones.
    """
    until = time.monotonic() + plan.minutes * 60 if plan.minutes else float("inf")
    legs, site_number = enumerate(plan.legs()), 0
    whole = False
    while not whole:
        own, site_number = folder / f"site-{site_number}", site_number + 1
        own.mkdir()
        with _site(plan, own) as site:
            say(f"servers are up in {own}; seed {plan.seed}")
            whole = True
            for number, names in legs:
                if time.monotonic() > until:
                    return
                outcome = _leg(plan, site, number, names, say)
                yield outcome
                if plan.ending.is_set():
                    return
                if outcome.error:
                    whole = False
                    break


def _site(plan: Plan, folder: Path) -> AbstractContextManager[Site]:
    powered = "power" in plan.needs
    return running(
        folder,
        "proxy" in plan.needs,
        lasting=plan.warm_up_s > 0,
        settings=SYNCED if powered else None,
        powered=powered,
    )


def _leg(plan: Plan, site: Site, number: int, names: list[str], say: Say) -> Outcome:
    folder = site.folder / f"leg-{number}"
    folder.mkdir()
    chance = Random(f"{plan.seed} {folder.name}")
    trial = Trial(site, folder, plan.model, plan.rate, plan.needs)
    outcome, started = Outcome(), time.monotonic()
    try:
        with _errors(trial, outcome, say):
            trial.start()
            say(f"{trial.id}: three engines in sync, {plan.rate:g} rows a second")
            if plan.warm_up_s:  # in each leg: its engines are new
                plan.ending.wait(plan.warm_up_s)
                trial.wait_in_sync(0.0)
            epoch = trial.epoch()
            if number == 0 and plan.soak_minutes:
                _soak(trial, plan, outcome, say)
                outcome.false_failovers, epoch = trial.epoch() - epoch, trial.epoch()
            for place, name in enumerate(names, start=1):
                if plan.ending.is_set():
                    break
                epoch = _fault(trial, name, chance, epoch, outcome)
                say(f"[{place}/{len(names)}] {_told(outcome.strikes[-1])}")
            outcome.false_failovers += trial.epoch() - epoch
        outcome.minutes = (time.monotonic() - started) / 60
        with _errors(trial, outcome, say):
            arrivals = trial.finish()
            outcome.verdict = verdict(trial, arrivals, outcome.strikes)
    finally:
        trial.stop()
    return outcome


@contextmanager
def _errors(trial: Trial, outcome: Outcome, say: Say) -> Iterator[None]:
    """Let what took too long, or broke, end the trial but not its verdict."""
    try:
        yield
    except (AssertionError, RuntimeError, LookupError) as error:
        outcome.error = outcome.error or f"{type(error).__name__}: {error}"
        say(f"ERROR {error}: {trial.where()}")


def _fault(trial: Trial, name: str, chance: Random, epoch: int, outcome: Outcome) -> int:
    """Strike, mend, wait until all is well; return the newest epoch."""
    fault = FAULTS[name]
    assert fault.prepare is not None, f"{name} is not a fault of processes"
    moment = "transaction" if fault.moments and chance.random() < 0.4 else "any"
    trial.random_moment(chance)
    strike_now = fault.prepare(trial, chance)
    if moment == "transaction":
        trial.in_transaction()
    seen = max(0, len(trial.reader.arrivals) - 1)
    strike = Strike(name, moment, "", "", time.time(), time.monotonic(), seen)
    outcome.strikes.append(strike)
    stolen = Stolen()
    stroke = strike_now()
    strike.target, strike.detail = stroke.target, stroke.detail
    if not stroke.lasts:
        _leave_alone(trial, strike.struck)
        strike.stolen = stolen.share()
    stroke.mend()
    if stroke.lasts:
        strike.stolen = stolen.share()
    trial.wait_in_sync(max(time.monotonic(), strike.struck))
    strike.ended = time.monotonic()
    strike.back = stroke.back()
    strike.measure(trial.reader.refresh()[strike.seen :])
    reached = trial.epoch()
    strike.takeovers = reached - epoch
    strike.false_failovers = max(0, strike.takeovers - fault.takeovers)
    return reached


def _leave_alone(trial: Trial, struck: float) -> None:
    """Ask no supervisor for anything until output has gone on for a while, or is long in coming.

    Fifty questions a second take a third of a core from those who take over just then.
    """
    pause = threading.Event()
    while not pause.wait(_LOOK_S) and time.monotonic() < struck + _ALONE_S:
        arrivals = trial.reader.refresh()
        if arrivals and arrivals[-1].time > struck + _SETTLED_S:
            return


def _told(strike: Strike) -> str:
    moment = " in a transaction" if strike.moment == "transaction" else ""
    detail = f" ({strike.detail})" if strike.detail else ""
    back = "" if strike.back_ms is None else f", {strike.back_ms:.0f} behind the return"
    gap = "no output behind it" if strike.gap_ms is None else f"gap {strike.gap_ms:.0f} ms"
    return (
        f"{strike.name}{moment}: {strike.target}{detail}; {gap}, "
        f"later {strike.later_ms:.0f}{back}; "
        f"{strike.takeovers} take-overs; in sync after {strike.ended - strike.struck:.1f} s"
    )


def _soak(trial: Trial, plan: Plan, outcome: Outcome, say: Say) -> None:
    """Let the load run; say each minute where things stand; note the longest gaps."""
    with Seconds() as seconds:
        for minute in range(1, round(plan.soak_minutes) + 1):
            seen = max(0, len(trial.reader.refresh()) - 1)
            if plan.ending.wait(60):
                return
            trial.wait_in_sync(0.0)
            gaps = seconds.gaps([each.time for each in trial.reader.refresh()[seen:]])
            outcome.soak, outcome.soak_minutes = outcome.soak.and_of(gaps), minute
            snapshots = [_snapshot(pod.status()) for pod in trial.pods]
            say(
                f"minute {minute}: {len(trial.reader.arrivals)} outputs, epoch {trial.epoch()}, "
                f"longest gap {gaps.longest_ms:.0f} ms, {gaps.quiet_ms:.0f} of quiet seconds; "
                f"{', '.join(filter(None, snapshots))}"
            )


def _snapshot(status: dict[str, Any]) -> str:
    """Say what an engine's newest snapshot was, and the worker that it was taken of."""
    if not status.get("snapshot_bytes"):
        return ""
    mib = {name: (status.get(name) or 0) / 2**20 for name in ("snapshot_bytes", "worker_memory")}
    return (
        f"{status['name']}: snapshot of {mib['snapshot_bytes']:.0f} MiB in "
        f"{status.get('snapshot_took_ms')} ms, held up {status.get('snapshot_ms')} ms, "
        f"worker {mib['worker_memory']:.0f} MiB"
    )
