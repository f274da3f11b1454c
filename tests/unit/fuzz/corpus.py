"""What is mutated: the models of this repository, and lines of CSV for their sources."""

import random

from support.every import TEXT, project
from support.models import ROOT

_PLACES = ("manifests", "tests")


def models() -> list[tuple[str, str]]:
    """Return (name, text) of every model of the repository, in one order."""
    found = {path for place in _PLACES for path in (ROOT / place).rglob("*.xml")}
    named = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in found]
    models = [pair for pair in named if "<contquery" in pair[1]]
    return sorted([*models, ("every window", TEXT)])


def every_window(chance: random.Random) -> str:
    """Return the model with every window type; mostly without Python, which costs a process."""
    return TEXT if chance.random() < 0.1 else project(without={"python"})


LINES = (
    "I,N, 1,2,3,4.5,text",
    "U,N,1,2,3,4.5,text",
    'p,n,1,,,,"a ""quoted"", text"',
    "D,N,1,,,,",
    "SD,N,7,1,2,3,4",
    "I,N,9223372036854775807,-1,0,1e300,\u00e4",
    "I,N,1,2,3,nan,",
    "U,P,1,,,,x",
)
"""Lines for the source `ev` of that model, good and bad."""
