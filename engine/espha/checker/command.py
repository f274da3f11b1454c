"""The command `espha verify` around the library: printing and exit codes."""

import json

from rich.console import Console

from espha.checker.report import table
from espha.checker.verify import VerifyError, VerifyOptions, verify
from espha.kafka.reader import LogError

__all__ = ["VerifyOptions", "run_verify"]


def run_verify(options: VerifyOptions, as_json: bool) -> int:
    """Verify and print; returns 0 (all well), 1 (damage) or 2 (could not verify)."""
    errors = Console(stderr=True)
    try:
        with errors.status("following …") as status:
            report = verify(options, lambda rows: status.update(f"following … {rows} rows out"))
    except (VerifyError, LogError) as error:
        errors.print(str(error), markup=False, highlight=False)
        return 2
    if as_json:
        print(json.dumps(report.to_json()))
    else:
        console = Console()
        console.print(table(report))
        for complaint in report.complaints():
            console.print(complaint, markup=False, highlight=False)
    return 0 if report.ok else 1
