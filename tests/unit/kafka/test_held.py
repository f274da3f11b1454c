"""Which topics stand still before their end."""

import json

from espha.kafka.held import Held, HeldTopics


def told(**offsets: tuple[int, int]) -> str:
    """Return statistics that say for each topic the last stable offset and the end."""
    return json.dumps(
        {
            "topics": {
                topic: {"partitions": {"0": {"ls_offset": stable, "hi_offset": end}, "-1": {}}}
                for topic, (stable, end) in offsets.items()
            }
        }
    )


def test_only_what_stands_still_for_long_is_held() -> None:
    now = 100.0
    held = HeldTopics(lambda: now)
    assert held.longest() is None
    for at in range(20):
        held.hear(told(moves=(at, 50), stands=(7, 50), whole=(50, 50), unknown=(-1001, -1)))
        now += 1
    assert held.longest() == Held("stands", 100.0)
    held.hear(told(moves=(30, 50), stands=(50, 50), whole=(50, 50)))
    assert held.longest() is None
    now += 11
    assert held.longest() == Held("moves", 120.0)


def test_a_topic_that_its_reader_has_paused_is_not_held() -> None:
    """Nobody asks for its records, so what is known of its end is what was true before."""
    now, paused = 100.0, {"full"}
    held = HeldTopics(lambda: now, paused)
    for _ in range(2):
        held.hear(told(full=(7, 50)))
        assert held.longest() is None
        now += 11
    paused.clear()
    held.hear(told(full=(7, 50)))
    now += 11
    assert held.longest() == Held("full", 122.0)
