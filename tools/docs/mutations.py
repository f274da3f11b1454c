"""The protections that `make mutations` takes out, in Markdown."""

import runpy
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from tools import ROOT

_PROTECTIONS: Final = ROOT / "tests" / "mutations" / "protections.py"
_GROUPS: Final = {
    "I1": "only the newest epoch writes",
    "I2": "a batch and its order record are one",
    "I3": "state is a function of the log",
    "I4": "a standby is never ahead",
    "I5": "no operator in a failover",
    "I6": "readers see committed records only",
    "live": "output goes on",
    "poison": "no record stops every engine",
    "edges": "adapters, each row once",
    "operator": "the operator does no harm",
}


def protections() -> str:
    """Return a table of them, by invariant: what is taken out, where, and what fails then."""
    every: Iterable[Any] = runpy.run_path(str(_PROTECTIONS))["MUTATIONS"]
    order = list(_GROUPS)
    ordered = sorted(every, key=lambda one: order.index(one.invariant))
    lines = ["| invariant | taken out | in | the test that fails |", "| --- | --- | --- | --- |"]
    for invariant, members in groupby(ordered, lambda one: one.invariant):
        head = _GROUPS[invariant]
        if invariant[1:].isdigit():
            head = f"{invariant} {head}"
        for one in members:
            lines.append(f"| {head} | {one.text} | `{_file(one.file)}` | {_words(one.test)} |")
            head = ""
    return "\n".join(lines)


def _file(path: str) -> str:
    return path.rsplit("/", 1)[1]


def _words(test: str) -> str:
    """Return a test's name for people."""
    return test.partition("::test_")[2].replace("_", " ")
