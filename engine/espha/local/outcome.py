"""What a demo ends with: the table, and whether anything is wrong. In a cluster and here alike."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table


def wrongs(report: Mapping[str, Any]) -> dict[str, int]:
    """Return what is wrong, by name and count.

    Args:
        report: what `espha verify --json` prints.
    """
    batches = report["batches"]
    rest = [
        report["order"],
        batches["orphans"],
        batches["incomplete"],
        batches["altered"],
        batches["displaced"],
    ]
    return {
        "lost": report["lost"],
        "double": report["double"],
        "out of order": report["disorder"],
        "wrong sums": report["wrong_sums"],
        "anything else wrong": (
            report["foreign"] + report["wrong_values"] + sum(len(each) for each in rest)
        ),
    }


def table(report: Mapping[str, Any]) -> Table:
    """Return rows in and out, what is wrong, and the longest gap at each fault."""
    shown = Table(title="What came out", show_header=False)
    shown.add_column()
    shown.add_column(justify="right")
    shown.add_row("rows in (file)", str(report["rows_in_file"]))
    shown.add_row("rows in (topic)", str(report["rows_in"]))
    shown.add_row("rows out (topic)", str(report["rows_out"]))
    shown.add_row("rows out (file)", str(report["rows_in_result"]))
    shown.add_row("take-overs", str(report["epoch"] - 1))
    shown.add_section()
    for name, count in wrongs(report).items():
        shown.add_row(name, f"[{'red' if count else 'green'}]{count}[/]")
    shown.add_section()
    for name, gap in report["gaps_ms"]:
        words = "no row after it" if gap is None else f"{gap:.0f}"
        shown.add_row(f"longest gap, ms: {name}", words)
    return shown


def complaint(report: Mapping[str, Any]) -> str:
    """Say what is not right, in words; nothing, where all is."""
    bad = [f"{name}: {count}" for name, count in wrongs(report).items() if count]
    if not bad and report["ok"]:
        return ""
    return "\n".join([f"the output is not right ({', '.join(bad)})", *report["complaints"]])
