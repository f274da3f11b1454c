"""Each way in which outputs and order records can part is found by name."""

import json
from collections.abc import Callable

import pytest

from espha.checker.batches import Batches, Written, check_batches, digest

OUT, DEAD = "p.O", "p.E"


def output(identity: str, value: str = "I,N, 1", topic: str = OUT) -> Written:
    return Written(topic, value.encode(), (("espha-id", identity.encode()),))


BATCHES = [
    ([["a", 0, 2], ["b", 0, 1]], [output("a:0:0"), output("a:1:0", "x", DEAD), output("b:0:0")]),
    ([], []),
    ([["b", 1, 3]], [output("b:1:0"), output("b:1:1"), output("b:2:0")]),
    ([["a", 2, 3]], [output("m:4:0"), output("a:2:0")]),
]
"""Input ranges and outputs of four batches; the last one's first output comes from the clock."""


def order() -> list[str]:
    return [
        json.dumps(
            {"sequence": n, "inputs": ranges, "outputs": len(outputs), "digest": digest(outputs)}
        )
        for n, (ranges, outputs) in enumerate(BATCHES, start=1)
    ]


def topics() -> dict[str, list[Written]]:
    everything = [each for _, outputs in BATCHES for each in outputs]
    return {topic: [each for each in everything if each.topic == topic] for topic in (OUT, DEAD)}


def test_a_faultless_log_has_no_problems() -> None:
    found = check_batches(order(), topics(), "m")
    assert found == Batches()
    assert found.problems() == []


def changed(rows: list[Written]) -> None:
    rows[1] = rows[1]._replace(value=b"I,N, 2")


def swapped(rows: list[Written]) -> None:
    rows[2], rows[3] = (
        rows[2]._replace(value=b"2", headers=rows[3].headers),
        rows[3]._replace(headers=rows[2].headers),
    )


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda rows: rows.append(output("a:9:0")), Batches(orphans=["a:9:0"])),
        (lambda rows: rows.append(output("m:9:0")), Batches(orphans=["m:9:0"])),
        (lambda rows: rows.append(output("x:4:0")), Batches(orphans=["x:4:0"])),
        (lambda rows: rows.append(output("")), Batches(orphans=["b'I,N, 1'"])),
        (lambda rows: rows.pop(0), Batches(incomplete=[1])),
        (lambda rows: rows.append(rows[0]), Batches(incomplete=[1], displaced=["a:0:0"])),
        (changed, Batches(altered=[1])),
        (swapped, Batches(altered=[3])),
    ],
    ids=["range nobody took", "clock of no record", "unknown topic", "no id", "removed",
         "doubled", "altered", "swapped"],
)  # fmt: skip
def test_damage(damage: Callable[[list[Written]], None], expected: Batches) -> None:
    written = topics()
    damage(written[OUT])
    found = check_batches(order(), written, "m")
    assert found == expected
    assert found.problems()


def test_the_order_within_a_topic_counts() -> None:
    """Outputs that stand in another order than they were computed in are no longer the same."""
    written = topics()
    written[OUT][2:4] = written[OUT][3:1:-1]
    assert check_batches(order(), written, "m") == Batches(altered=[3])


def test_what_belonged_to_removed_order_records_is_no_orphan() -> None:
    """Outputs are kept for longer than the order log; and an unknown id is still found."""
    left = order()[2:]
    found = check_batches(left, topics(), "m", trimmed=["m"])
    assert found == Batches()
    written = topics()
    written[OUT].append(output("a:9:0"))
    assert check_batches(left, written, "m", trimmed=["m"]).orphans == ["a:9:0"]
    written[OUT][-1] = output("a:0:0")
    assert check_batches(left, written, "m", trimmed=["m"]).displaced == ["a:0:0"], "once more"
    assert check_batches([], topics(), "m", trimmed=["m"]) == Batches()


@pytest.mark.parametrize("removed", range(7))
def test_batches_whose_outputs_are_removed_are_not_judged(removed: int) -> None:
    """But the first one that is there as a whole is, and all behind it."""
    written = topics()
    written[OUT] = written[OUT][removed:]
    trimmed = [OUT] if removed else []
    found = check_batches(order(), written, "m", trimmed)
    assert (found.problems(), found.unjudged) == ([], [0, 1, 1, 2, 2, 2, 3][removed])
    if 0 < removed < 5:
        changed_last = written[OUT][-1]._replace(value=b"other")
        written[OUT][-1] = changed_last
        assert check_batches(order(), written, "m", trimmed).altered == [4]


@pytest.mark.parametrize("known", range(5))
def test_what_is_committed_while_topics_are_read_is_no_damage(known: int) -> None:
    """Whether its outputs are there already or not."""
    written = topics()
    assert check_batches(order()[:known], written, "m", later=order()[known:]) == Batches()
    written[OUT].pop()
    found = check_batches(order()[:known], written, "m", later=order()[known:])
    assert found == (Batches(incomplete=[4]) if known == 4 else Batches())


def test_a_topic_without_its_first_records_hides_no_damage_on_others() -> None:
    """Dead letters are rare: all of them may be removed long before an output is."""
    written = topics()
    changed(written[OUT])
    found = check_batches(order(), {OUT: written[OUT], DEAD: []}, "m", [DEAD])
    assert (found.altered, found.unjudged) == ([], 1), "the one that had a dead letter"
    written = topics()
    swapped(written[OUT])
    assert check_batches(order(), {OUT: written[OUT], DEAD: []}, "m", [DEAD]).altered == [3]


def test_outputs_behind_those_of_a_later_batch_are_found() -> None:
    """Each batch is whole; only their places are wrong."""
    written = topics()
    rows = written[OUT]
    rows[:] = rows[2:5] + rows[:2] + rows[5:]
    assert check_batches(order(), written, "m") == Batches(displaced=["a:0:0", "b:0:0"])
