"""When Kafka counts as silent; tests/component/test_supervisor.py asks a real one."""

from espha.ha.kafka_probe import KafkaProbe


def ticks_until_silent(probe: KafkaProbe) -> int:
    for count in range(1, 1000):
        probe.tick()
        if not probe.reachable:
            return count
    raise AssertionError("it waits for ever")


def test_a_cut_teaches_nothing_about_what_is_usual() -> None:
    probe = KafkaProbe("", 500, 0.1)
    assert ticks_until_silent(probe) == 5
    for _ in range(50):
        probe.tick()
    probe._heard()
    assert probe.reachable
    assert ticks_until_silent(probe) == 5


def test_a_slow_kafka_gets_more_time() -> None:
    probe = KafkaProbe("", 500, 0.1)
    for _ in range(4):
        probe.tick()
    probe._heard()
    assert ticks_until_silent(probe) == 16
