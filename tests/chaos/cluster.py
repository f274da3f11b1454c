"""Faults that only a cluster has, struck at the demo's deployment while its output is watched."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from chaos.campaign import Outcome, Plan
from chaos.verdict import Strike, Verdict
from tools import demo
from tools.offline_cluster import clients
from tools.offline_cluster.say import Failure

ROWS_PER_SECOND = 10.0
"""What the demo's producer writes."""
MODEL = "demo"
_RECOVERY_S = 240.0


def campaign(plan: Plan, say: Callable[[str], None]) -> Iterator[Outcome]:
    """Run all legs, each on a deployment of its own; each yields what came of it."""
    for number, names in enumerate(plan.legs()):
        outcome = Outcome()
        try:
            _leg(names, Random(f"{plan.seed} {number}"), outcome, say, plan.ending)
        except Failure as failure:
            outcome.error = str(failure)
            say(f"ERROR {failure}")
        yield outcome
        if plan.ending.is_set():
            return


def _leg(
    names: list[str],
    chance: Random,
    outcome: Outcome,
    say: Callable[[str], None],
    ending: threading.Event,
) -> None:
    demo.install()
    demo.clean()
    demo.deploy()
    demo.start_input()
    started = time.monotonic()
    for place, name in enumerate(names, start=1):
        if ending.is_set():
            break
        strike = _fault(name, chance)
        outcome.strikes.append(strike)
        took = strike.ended - strike.struck
        say(f"[{place}/{len(names)}] {name} {strike.detail}: all is well after {took:.1f} s")
    outcome.minutes = (time.monotonic() - started) / 60
    report = demo.finish()
    for strike, (_, gap) in zip(outcome.strikes, report["gaps_ms"], strict=True):
        strike.gap_ms = gap
    outcome.verdict = verdict(report)


def _fault(name: str, chance: Random) -> Strike:
    """Kill the operator, half of the time the active engine behind it; wait until all is well."""
    time.sleep(chance.uniform(0, 2))  # where in its work the operator is
    before, operator, rows = demo.status(), _operator(), demo.rows_written()
    strike = Strike(name, "any", operator, "alone", time.time(), time.monotonic(), 0)
    clients.kubectl("-n", demo.SYSTEM, "delete", "pod", operator, "--force", "--grace-period=0")
    if chance.random() < 0.5:
        strike.detail = f"with the process of {before['active']}"
        strike.wall = demo.kill_process(before["active"])
    demo.CHECKER.note(f"{strike.wall:.3f} {name}")
    deaths = int(strike.detail != "alone")

    def recovered() -> bool:
        now = demo.status()
        return (
            now.get("phase") == "Ready"
            and now.get("failovers", 0) >= before.get("failovers", 0) + deaths
            and _operator() not in ("", operator)
            and demo.rows_written() > rows
        )

    demo.wait("another operator is there, and all are in sync", recovered, _RECOVERY_S)
    strike.ended = time.monotonic()
    strike.takeovers = demo.status().get("failovers", 0) - before.get("failovers", 0)
    strike.false_failovers = max(0, strike.takeovers - deaths)
    return strike


def _operator() -> str:
    """Return the name of the operator's pod that is ready; "" when there is none."""
    ready = '{range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name}{" "}{end}'
    found = clients.kubectl("-n", demo.SYSTEM, "get", "pods", "-o", f"jsonpath={ready}").split()
    return found[0] if found else ""


def verdict(report: dict[str, Any]) -> Verdict:
    """Return what `espha verify` found, in the campaign's words."""
    wrong = report["wrong_sums"] + report["wrong_values"] + report["foreign"]
    damage = {
        "lost": report["lost"],
        "double": report["double"],
        "out of order": report["disorder"],
        "wrong": wrong,
    }
    return Verdict(
        rows_in=report["rows_in"],
        rows_out=report["rows_out"],
        damage=Counter(damage),
        problems=[] if report["ok"] else report["complaints"],
    )
