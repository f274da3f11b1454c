"""`make conformance`: tries out the corpus, shows a table, and writes the page of results."""

import argparse
import logging
import sys
from html import unescape

import structlog
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conformance.corpus import corpus_folder
from conformance.page import PAGE, page, row
from conformance.suite import Verdict, verdicts

_COLOURS = {"yes": "green", "**no**": "red"}


def main() -> int:
    """Return 1 when something is left to do."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("part", nargs="?", default="", help="only projects with this in their name")
    parser.add_argument("--rows", action="store_true", help="show the rows that differ")
    options = parser.parse_args()
    console = Console()
    # What the projects' own notifications and scripts say is not asked for.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    corpus = corpus_folder()
    if corpus is None:
        console.print("there is no corpus in ../shared/corpus, and ESPHA_CORPUS names none")
        return 0
    table = Table("project", "loads", "runs", "documented", "remark", title="Conformance")
    found = []
    with console.status("running the corpus") as status:
        for verdict in verdicts(corpus, options.part):
            status.update(verdict.name)
            found.append(verdict)
            table.add_row(*_shown(verdict))
    console.print(table)
    if options.rows:
        for verdict in found:
            _tell(verdict, console)
    if not options.part:
        PAGE.write_text(page(found), encoding="utf-8")
        console.print(f"written: {PAGE}")
    bad = [verdict for verdict in found if not verdict.good]
    console.print(f"{len(found)} projects, {len(bad)} of them with something left to do")
    return int(bool(bad))


def _shown(verdict: Verdict) -> list[str]:
    cells = [escape(unescape(cell)) for cell in row(verdict)]
    return [
        f"[{_COLOURS[cell]}]{cell.strip('*')}[/]" if cell in _COLOURS else cell for cell in cells
    ]


def _tell(verdict: Verdict, console: Console) -> None:
    for one in verdict.differences:
        cause = f" ({one.cause})" if one.cause else ""
        console.print(f"{verdict.name} {one.window}{cause}", markup=False)
        console.print(one.text, markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
