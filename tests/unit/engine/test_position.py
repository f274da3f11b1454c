"""Where an engine stands, and how it came to lead."""

from dataclasses import replace

import pytest

from espha.engine.position import Position, taken_over
from espha.protocol.order import OrderRecord
from espha.protocol.status import TakeOverFacts


def record(engine: str, clock: int, heir: str = "") -> OrderRecord:
    return OrderRecord(
        format=2, sequence=5, inputs=(), clock=clock, outputs=0, digest="", model="m",
        engine=engine, epoch=2, runtime="r", heir=heir,
    )  # fmt: skip


@pytest.mark.parametrize(("heir", "planned"), [("", False), ("b", True), ("c", False)])
def test_a_take_over_is_known_by_the_records_on_both_sides(heir: str, planned: bool) -> None:
    at = Position()
    at.passed(record("a", 1_000, heir))
    at.heir = ""  # as who waits for its turn does
    before = replace(at)
    at.passed(record("b", 1_412))
    assert taken_over(before, at) == TakeOverFacts(
        taken_from="a", taken_as_planned=planned, takeover_gap_ms=412
    )


def test_the_first_engine_of_all_has_taken_nothing_over() -> None:
    at = Position()
    before = replace(at)
    at.passed(record("a", 1_000))
    assert taken_over(before, at) == TakeOverFacts()
