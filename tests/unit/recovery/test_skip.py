"""What `espha skip` leaves out, and the order record that says so."""

import pytest

from espha.engine.digests import inputs_digest
from espha.pipeline.job import Result
from espha.protocol.order import FORMAT, OrderRecord, Resume, Shadow
from espha.recovery.skip import InputPlace, SkipError, order_record, steps

ONE = InputPlace("cq/one", "t.one.I", next=40, first=60, end=100)
TWO = InputPlace("cq/two", "t.two.I", next=7, first=0, end=9)
UNKNOWN = InputPlace("cq/three", "t.three.I", next=None, first=5, end=9)
TAIL = OrderRecord(
    format=2,
    sequence=9,
    inputs=(),
    clock=1_700_000_000_000,
    outputs=3,
    digest="d",
    model="A",
    engine="engine-1",
    epoch=4,
    runtime="r",
    semantics=7,
    heir="engine-2",
    since=2,
    shadow=Shadow(model="B", since=8, offset=12, cursors=(("t.one.I", 30),)),
)


def left_out(window: str, to: str, *places: InputPlace) -> list[tuple[str, int]]:
    return [(step.place.topic, step.to) for step in steps(places, window, to)]


def test_only_what_is_gone_is_left_out_unless_more_is_asked_for() -> None:
    every = (ONE, TWO, UNKNOWN)
    assert left_out("", "oldest", *every) == [("t.one.I", 60), ("t.three.I", 5)]
    assert left_out("", "newest", *every) == [("t.one.I", 100), ("t.two.I", 9), ("t.three.I", 9)]
    assert left_out("cq/two", "oldest", *every) == []
    assert left_out("cq/two", "8", *every) == [("t.two.I", 8)]
    assert left_out("", "80", ONE) == [("t.one.I", 80)]


@pytest.mark.parametrize(
    ("window", "to", "says"),
    [
        ("cq/four", "oldest", "source window 'cq/four' is not one of: cq/one, cq/two"),
        ("", "8", "an offset is of one topic: name its window, of cq/one, cq/two"),
        ("cq/two", "last", "'last' is neither an offset nor oldest nor newest"),
        ("cq/two", "-3", "'-3' is neither an offset nor oldest nor newest"),
        ("cq/two", "6", "engines go on at offset 7, and the topic holds 0 to 8: 6 is no place"),
        ("cq/two", "10", "engines go on at offset 7, and the topic holds 0 to 8: 10 is no place"),
        ("cq/one", "50", "engines go on at offset 40, and the topic holds 60 to 99: 50 is no"),
    ],
)
def test_what_cannot_be_done_is_named(window: str, to: str, says: str) -> None:
    with pytest.raises(SkipError) as caught:
        steps((ONE, TWO), window, to)
    assert says in str(caught.value)


def test_the_order_record_is_what_a_follower_makes_of_it() -> None:
    """No input, no output, no time: and all that stood before it still holds."""
    record = order_record(TAIL, [Resume("t.one.I", 60)])
    assert (record.format, record.sequence, record.epoch) == (FORMAT, 10, 5)
    assert (record.digest, record.outputs) == (Result([], 0).digest(), 0)
    assert (record.inputs_digest, record.records) == (inputs_digest([]), 0)
    assert (record.clock, record.model, record.since) == (TAIL.clock, "A", 2)
    assert (record.semantics, record.heir) == (7, "")
    assert record.shadow == Shadow(model="B", since=8, offset=12)
    assert OrderRecord.model_validate_json(record.encode()) == record
