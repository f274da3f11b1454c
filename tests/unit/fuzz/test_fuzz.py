"""Damaged models and damaged data: refused with a place, never a crash and never a hang.

`ESPHA_FUZZ=10000` sets how many models and how many lines are tried.
"""

import faulthandler
import os
import random
import time
from collections import Counter

import pytest

from espha.kernel import Kernel
from espha.model import ModelError, Project
from espha.model.events import BadRecord, Event
from espha.reader import read_project
from espha.records.text import parse_event
from unit.fuzz.corpus import LINES, every_window, models
from unit.fuzz.mutate import mutated_line, mutated_text, mutated_tree

ROUNDS = int(os.environ.get("ESPHA_FUZZ", "200"))
SECONDS = 20.0
"""Longest time for one model, of the processor; a hang would be longer than any time."""

PARTS = 4
MODELS = models()


def rounds(part: int) -> range:
    return range(part * ROUNDS // PARTS, (part + 1) * ROUNDS // PARTS)


def check(text: str) -> Project | None:
    """Read a model; a refusal must name a place and say what is wrong."""
    try:
        return read_project(text)
    except ModelError as error:
        lines = text.count("\n") + 1
        assert error.problems
        for problem in error.problems:
            assert 1 <= problem.line <= lines
            assert problem.element
            assert problem.reason
        return None


def value(chance: random.Random, type_: str) -> object:
    """Return a value of a type, or now and then of another one."""
    numbers = [0, 1, 2, -1, 7, 2**31 - 1, 2**63 - 1, -(2**63)]
    doubles = [0.0, 1.5, -2.25, 1e308, float("nan"), 1e-300]
    if chance.random() < 0.1:
        return chance.choice([None, "", "x", 1, 2**70, float("inf"), b"\xff", (1, None), True])
    if type_ in {"double", "money"}:
        return chance.choice([*doubles, None])
    if type_ == "string":
        return chance.choice(
            ["", "a", "b", "\u00e4" * 50, '{"a": [1, {"b": 2}]}', "<a><b/></a>", None]
        )
    if type_ == "blob":
        return chance.choice([b"", b"\x00\xff", None])
    if type_.startswith("array"):
        return chance.choice([(), (1, None, 3), None])
    return chance.choice([*numbers, None])


def feed(project: Project, chance: random.Random) -> None:
    """Publish some events into a model that could be read; bad ones are refused."""
    kernel = Kernel(project, published=list(project.windows))
    sources = [window for window in project.windows.values() if window.type == "source"]
    clock = 1_700_000_000_000
    for _ in range(6 if sources else 0):
        window = chance.choice(sources)
        row = tuple(value(chance, field.type) for field in window.fields)
        if getattr(window, "autogen_key", False):
            row = tuple(None if f.key else v for f, v in zip(window.fields, row, strict=True))
        event = Event(chance.choice(["I", "I", "P", "U", "D", "SD"]), "N", row)  # type: ignore[arg-type]
        clock += chance.choice([0, 1, 1_000, 60_000])
        try:
            kernel.publish(window.path, event, clock)
        except BadRecord as refusal:
            assert refusal.reason
        for path, reason in kernel.take_refusals():
            assert path in project.windows
            assert reason
    state = kernel.state()
    again = Kernel(project)
    again.restore(state)
    assert again.state() == state


@pytest.fixture(autouse=True)
def patience() -> object:
    """Show where it hangs, if it does."""
    faulthandler.dump_traceback_later(ROUNDS * SECONDS / PARTS + 60, exit=False)
    yield
    faulthandler.cancel_dump_traceback_later()


def test_the_corpus_is_good() -> None:
    assert len(MODELS) >= 5
    for name, text in MODELS:
        tokens = {"ESP_PROJECT_HOME": "/tmp", "ESP_PROJECT_OUTPUT": "/tmp"}
        assert read_project(text, name, tokens=tokens).windows


def try_model(number: int) -> str:
    """Damage a model, read it, and run it if it can be read; say which of the two."""
    chance = random.Random(number)
    text = every_window(chance) if chance.random() < 0.6 else chance.choice(MODELS)[1]
    mutate = mutated_tree if chance.random() < 0.75 else mutated_text
    project = check(mutate(chance, text))
    if project is None:
        return "refused"
    feed(project, chance)
    return "run"


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_models_are_refused_or_run(part: int) -> None:
    found: Counter[str] = Counter()
    for number in rounds(part):
        started = time.process_time()
        try:
            found[try_model(number)] += 1
        except Exception as error:
            error.add_note(f"seed {number}")
            raise
        assert time.process_time() - started < SECONDS, number
    print(f"models: {dict(found)}")
    assert found["refused"] > 0
    assert found["run"] > 0


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_lines_are_refused_or_taken(part: int) -> None:
    project = read_project(every_window(random.Random(part)))
    kernel, path = Kernel(project), "q/ev"
    fields = project.windows[path].fields
    found: Counter[str] = Counter()
    for number in rounds(part):
        chance = random.Random(f"line {number}")
        line = mutated_line(chance, chance.choice(LINES))
        if number % 8 == 0:
            kernel = Kernel(project)  # an empty one, so that inserts are new
        try:
            kernel.publish(path, parse_event(line, fields), number)
            found["taken"] += 1
        except BadRecord as refusal:
            assert refusal.reason
            found["refused"] += 1
        except Exception as error:
            error.add_note(f"seed {number}: {line!r}")
            raise
        kernel.take_refusals()
    print(f"lines: {dict(found)}")
    assert found["refused"] > 0
    assert found["taken"] > 0
