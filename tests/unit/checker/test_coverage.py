"""Input that nobody processed is found, wherever it stands."""

import pytest

from espha.checker.coverage import Coverage, Unprocessed, check_coverage
from espha.protocol.order import Range


@pytest.mark.parametrize(
    ("ranges", "passed_over", "waiting"),
    [
        ([(0, 4), (4, 10)], None, None),
        ([], None, (0, 10)),
        ([(0, 4)], None, (4, 6)),
        ([(4, 10)], (0, 4), None),
        ([(0, 4), (6, 10)], (4, 2), None),
        ([(2, 4), (6, 8)], (0, 4), (8, 2)),
    ],
    ids=["all", "none", "tail waits", "beginning", "hole", "all three"],
)
def test_each_record_has_its_batch(
    ranges: list[tuple[int, int]],
    passed_over: tuple[int, int] | None,
    waiting: tuple[int, int] | None,
) -> None:
    found = check_coverage([Range("in", *each) for each in ranges], {"in": range(10)})
    assert found == Coverage(
        [Unprocessed("in", *passed_over)] if passed_over else [],
        [Unprocessed("in", *waiting)] if waiting else [],
    )


def test_offsets_of_markers_are_no_records() -> None:
    ranges = [Range("in", 0, 2), Range("in", 2, 7)]
    assert check_coverage(ranges, {"in": [0, 1, 3, 4, 6]}) == Coverage()


def test_each_topic_is_looked_at() -> None:
    found = check_coverage([Range("a", 0, 2)], {"a": [0, 1], "b": [0]})
    assert [str(each) for each in found.waiting] == [
        "1 records of b in no batch, the first at offset 0"
    ]


def test_what_removed_order_records_named_is_not_missing() -> None:
    """A hole behind the first one that is left is."""
    ranges = [Range("in", 4, 6), Range("in", 8, 10)]
    found = check_coverage(ranges, {"in": range(12), "other": [1]}, trimmed=True)
    assert found == Coverage([Unprocessed("in", 6, 2)], [Unprocessed("in", 10, 2)])
