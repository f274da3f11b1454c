"""`make chaos CHAOS="…"`, or `python -m chaos …` with engine and tests on the path."""

import logging
import random
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from chaos import cluster, disk, report, summary
from chaos.campaign import Outcome, Plan, campaign
from chaos.faults import FAULTS
from chaos.here import ROOT, commit
from chaos.models import MODELS
from chaos.summary import Summary
from tools.offline_cluster import clients

DOCS = ROOT / "docs" / "chaos"
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
_ENDING = threading.Event()
_USUAL = "engine,supervisor,pod"
_OWN_DEPLOYMENT = ("cluster", "plain", "power", "volume", "idle")
"""Needs of faults that no other fault goes with."""
_CONSOLE = Console(soft_wrap=True) if sys.stdout.isatty() else Console(width=160, soft_wrap=True)


def main(
    *,
    faults: Annotated[
        str | None,
        typer.Option(help=f"Names, with commas; `all`; `list` names them; by default {_USUAL}"),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How often each fault strikes")] = 5,
    rate: Annotated[float, typer.Option(min=1, help="Input rows a second")] = 200,
    model: Annotated[str, typer.Option(help=", ".join(MODELS))] = "ha",
    seed: Annotated[int | None, typer.Option(help="Repeat a run's choices")] = None,
    leg: Annotated[int, typer.Option(min=1, help="Faults on one deployment")] = 50,
    soak: Annotated[
        float, typer.Option(help="Minutes of load before the faults; by default then none follow")
    ] = 0,
    minutes: Annotated[
        float, typer.Option(help="Begin no new leg after so long; 0: as long as it takes")
    ] = 0,
    warm_up: Annotated[
        float, typer.Option(help="Seconds of load before the first fault of a leg")
    ] = 120,
    output: Annotated[Path, typer.Option(help="The JSON report, with every strike")] = ROOT
    / "out"
    / "chaos.json",
    merge: Annotated[bool, typer.Option(help="Add to the report that is there")] = False,
    fill: Annotated[
        bool, typer.Option(help="Strike only as often as the report falls short of --count")
    ] = False,
    docs: Annotated[bool, typer.Option(help="Also add to the summary in docs/chaos/")] = False,
    fold: Annotated[
        str,
        typer.Option(
            help="With --docs: first put away, as of code until that COMMIT, the figures of "
            "--faults and of --soak; all where neither is given"
        ),
    ] = "",
    show: Annotated[bool, typer.Option(help="Run nothing; show the report that is there")] = False,
) -> None:
    """Break a deployment under load again and again, and say what a reader saw."""
    if faults == "list":
        _list()
        return
    if fold and not docs:
        raise typer.BadParameter("--fold needs --docs: figures are put away in docs/chaos/")
    logging.getLogger("kazoo").setLevel(logging.ERROR)  # it tells of every killed server
    runs = report.load(output) if merge or ((fill or show) and not docs) else []
    shown = summary.load(DOCS / "summary.json") if docs else summary.of(runs)
    names = faults_of(faults, soak)
    model = _model(model)
    if _in_cluster(names):
        rate, model = cluster.ROWS_PER_SECOND, cluster.MODEL
    elif "plain" in {FAULTS[name].needs for name in names}:
        model = "plain"
    if fold:
        shown.fold(fold, names if faults else (), (model, rate) if soak else None)
        summary.save(DOCS / "summary.json", shown)
    had = shown.counts() if fill else {}
    plan = Plan(names, count, rate, model, _seed(seed), leg, soak, warm_up, had, minutes, _ENDING)
    for outcome in _outcomes(plan) if not show else ():
        runs.append(report.run_of(plan, _source(), outcome))
        report.save(output, runs)
        shown.add(runs[-1])
        if docs:
            summary.save(DOCS / "summary.json", shown)
    _show(shown, DOCS / "results" if docs else output.with_suffix(""))
    raise typer.Exit(1 if shown.wrong else 0)


def _show(shown: Summary, path: Path) -> None:
    """Print the table and what is wrong; write the picture and the table beside each other."""
    if shown.trials:
        report.picture(shown, path.with_suffix(".png"))
        path.with_suffix(".md").write_text(report.markdown(shown))
    _CONSOLE.print(report.table(shown))
    for problem in shown.wrong:
        _CONSOLE.print(problem, markup=False, highlight=False)


def _interrupt(*_: object) -> None:
    """End the campaign behind the strike under way; a second time at once.

    Then nothing disturbs what ends its processes.
    """
    if not _ENDING.is_set():
        _ENDING.set()
        return
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _list() -> None:
    for name, fault in FAULTS.items():
        lack = _lacks(fault.needs)
        _CONSOLE.print(f"{name:20} {fault.text}{f' ({lack})' if lack else ''}", highlight=False)


def faults_of(text: str | None, soak: float) -> tuple[str, ...]:
    """Return the faults that an option names; raises typer.BadParameter."""
    if text is None:
        return () if soak else tuple(_USUAL.split(","))
    if text == "all":
        here = {name: each for name, each in FAULTS.items() if each.needs not in _OWN_DEPLOYMENT}
        return tuple(name for name, fault in here.items() if not _lacks(fault.needs))
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        raise typer.BadParameter(f"no fault {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    for need in _OWN_DEPLOYMENT:
        if len({FAULTS[name].needs == need for name in names}) > 1:
            alone = ", ".join(name for name in names if FAULTS[name].needs == need)
            raise typer.BadParameter(f"{alone} has a deployment of its own; name it alone")
    lacking = [lack for name in names if (lack := _lacks(FAULTS[name].needs))]
    if lacking:
        raise typer.BadParameter(lacking[0])
    return names


def _in_cluster(names: tuple[str, ...]) -> bool:
    return any(FAULTS[name].needs == "cluster" for name in names)


def _lacks(need: str) -> str:
    """Say what this machine lacks for a fault; "" when nothing is missing."""
    if need in ("disk", "power", "volume") and not disk.possible():
        return "disks that fail need root, to mount them"
    if need == "cluster" and not clients.kubeconfig().exists():
        return "there is no local cluster: make cluster images"
    return ""


def _model(name: str) -> str:
    if name not in MODELS:
        raise typer.BadParameter(f"no model {name}; there are {', '.join(MODELS)}")
    return name


def _seed(seed: int | None) -> int:
    return random.SystemRandom().randrange(1_000_000) if seed is None else seed


def _outcomes(plan: Plan) -> Iterator[Outcome]:
    return cluster.campaign(plan, _say) if _in_cluster(plan.faults) else _of_processes(plan)


def _of_processes(plan: Plan) -> Iterator[Outcome]:
    folder = Path(tempfile.mkdtemp(prefix="espha-chaos-"))
    whole = False
    try:
        outcomes = []
        for outcome in campaign(plan, folder, _say):
            outcomes.append(outcome.error or outcome.verdict.problems)
            yield outcome
        whole = not any(outcomes)
    finally:
        if whole:
            shutil.rmtree(folder)
        else:
            _say(f"logs are kept in {folder}")


def _say(text: str) -> None:
    _CONSOLE.print(f"{time.strftime('%H:%M:%S')} {text}", markup=False, highlight=False)


def _source() -> report.Source:
    command = f'make chaos CHAOS="{shlex.join(sys.argv[1:])}"'
    return report.Source(command, commit(), datetime.now(UTC).isoformat("T", "seconds"))


if __name__ == "__main__":
    for each in _INTERRUPTS:
        signal.signal(each, _interrupt)
    typer.run(main)
