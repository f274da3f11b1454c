"""The command `espha skip` around `espha.recovery.skip`: printing and exit codes."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from espha.deployment import DeploymentError, Place
from espha.kafka.reader import LogError
from espha.kafka.writer import WriterFailed
from espha.recovery.skip import SkipError, Step, places, skip, steps


def run_skip(place: Place, window: str, to: str, *, dry_run: bool, as_json: bool) -> int:
    """Leave input out, or say what would be; returns 0, or 2 where that cannot be done.

    Args:
        place: where the deployment is.
        window: "query/window"; empty: all source windows.
        to: an offset, `oldest` or `newest`.
        dry_run: commit nothing.
        as_json: print one object of JSON.
    """
    sequence = 0
    try:
        plan = place.plan()
        if dry_run:
            chosen = steps(places(place.bootstrap, plan)[1], window, to)
        else:
            sequence, chosen = skip(place.bootstrap, plan, window, to)
    except (DeploymentError, LogError, SkipError, WriterFailed) as error:
        Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
        return 2
    if as_json:
        skipped = [_object(one) for one in chosen]
        print(json.dumps({"sequence": sequence or None, "skipped": skipped}))
        return 0
    console = Console()
    if chosen:
        console.print(_table(chosen))
    console.print(_sentence(sequence, chosen), markup=False, highlight=False)
    return 0


def _sentence(sequence: int, chosen: Sequence[Step]) -> str:
    if not chosen:
        return "nothing to skip"
    if not sequence:
        return "nothing was changed (--dry-run)"
    return f"order record {sequence} says so to all engines; the one that led starts again"


def _table(chosen: Sequence[Step]) -> Table:
    """Return what is left out, a line for each topic."""
    made = Table()
    for head in ("source window", "topic"):
        made.add_column(head, overflow="fold")
    for head in ("goes on at", "instead of", "oldest", "newest"):
        made.add_column(head, justify="right")
    for place, to in chosen:
        begin = "?" if place.next is None else str(place.next)
        made.add_row(
            place.window, place.topic, str(to), begin, str(place.first), str(place.end - 1)
        )
    return made


def _object(step: Step) -> dict[str, object]:
    place = step.place
    return {
        "window": place.window,
        "topic": place.topic,
        "from": place.next,
        "to": step.to,
        "oldest": place.first,
        "end": place.end,
    }
