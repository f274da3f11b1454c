"""When Kafka counts as silent; tests/component/test_supervisor.py asks a real one."""

from espha.ha.kafka_probe import Reach


def ticks_until_silent(reach: Reach) -> int:
    for count in range(1, 1000):
        reach.tick()
        if not reach.answers:
            return count
    raise AssertionError("it waits for ever")


def test_a_cut_teaches_nothing_about_what_is_usual() -> None:
    reach = Reach("", 500, 0.1)
    assert ticks_until_silent(reach) == 5
    for _ in range(50):
        reach.tick()
    reach._heard()
    assert reach.answers
    assert ticks_until_silent(reach) == 5


def test_a_slow_kafka_gets_more_time() -> None:
    reach = Reach("", 500, 0.1)
    for _ in range(4):
        reach.tick()
    reach._heard()
    assert ticks_until_silent(reach) == 16
