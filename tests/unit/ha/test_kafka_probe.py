"""When a broker counts as silent; tests/component/test_supervisor.py asks real ones."""

import time

import pytest

from espha.ha import kafka_probe
from espha.ha.kafka_probe import KafkaProbe, _Broker, others_reach_more
from support.status import engine_status

HERE = (True, True, False)
SILENT_MS = (20, 40, 700)


def ticks_until_silent(broker: _Broker) -> int:
    for count in range(1, 1000):
        broker.tick()
        if not broker.reachable:
            return count
    raise AssertionError("it waits for ever")


def test_a_cut_teaches_nothing_about_what_is_usual() -> None:
    broker = _Broker(0.5, 0.1)
    assert ticks_until_silent(broker) == 5
    for _ in range(50):
        broker.tick()
    broker.heard()
    assert broker.reachable
    assert ticks_until_silent(broker) == 5


def test_a_slow_kafka_gets_more_time() -> None:
    broker = _Broker(0.5, 0.1)
    for _ in range(4):
        broker.tick()
    broker.heard()
    assert ticks_until_silent(broker) == 16


def test_how_often_it_is_asked_is_no_measure_of_what_is_usual() -> None:
    broker = _Broker(0.5, 0.1)
    for _ in range(50):
        broker.tick()
        broker.asked()
        broker.tick()  # the answer takes a moment, and a tick falls into it
        broker.heard()
    assert ticks_until_silent(broker) == 5


def test_a_kafka_that_answers_slowly_gets_more_time() -> None:
    broker = _Broker(0.5, 0.1)
    broker.asked()
    for _ in range(2):
        broker.tick()
    broker.heard()
    assert ticks_until_silent(broker) == 8


@pytest.mark.parametrize(
    ("silent_ms", "more"),
    [
        ((10, 20, 30), True),
        ((10, 20, 400), False),  # it has not heard it since, either: the broker is dead
        ((10, 900, 30), False),  # each hears what the other does not: nobody goes
        ((10, 20), False),
        ((), False),
    ],
)
def test_who_hears_more_must_hear_all_the_rest(
    monkeypatch: pytest.MonkeyPatch, silent_ms: tuple[int, ...], more: bool
) -> None:
    peer = engine_status("b").model_copy(update={"kafka_silent_ms": silent_ms})
    monkeypatch.setattr(kafka_probe, "ask_peer", lambda address: peer)
    assert others_reach_more("127.0.0.1:1", HERE, SILENT_MS) is more


@pytest.mark.parametrize(
    ("heard_ms", "silent_ms", "more"),
    [
        (60_000, 700, True),  # all the time: this one is cut off
        (400, 5_000, False),  # it was away for both, and has just come back
        (8_000, 60_000, False),
        (11_000, 60_000, True),  # by now this one would have found it, too
    ],
)
def test_who_finds_a_broker_late_that_came_back_is_not_cut_off(
    monkeypatch: pytest.MonkeyPatch, heard_ms: int, silent_ms: int, more: bool
) -> None:
    heard = {"kafka_silent_ms": (10, 20, 30), "kafka_heard_ms": (60_000, 60_000, heard_ms)}
    peer = engine_status("b").model_copy(update=heard)
    monkeypatch.setattr(kafka_probe, "ask_peer", lambda address: peer)
    assert others_reach_more("127.0.0.1:1", HERE, (20, 40, silent_ms)) is more


@pytest.mark.parametrize(
    ("ticks", "heard_ms"),
    [
        (20, 0),  # the broker was silent
        (1, 3500),  # nothing ran here, not even the listener: nobody is to blame
    ],
)
def test_a_silent_broker_is_heard_anew_and_a_host_that_stops_does_not_count(
    monkeypatch: pytest.MonkeyPatch, ticks: int, heard_ms: int
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    broker = _Broker(0.5, 0.1)
    assert broker.heard_ms == 0

    def hears_after(passed_s: float, ticks: int) -> int:
        now[0] += passed_s
        for _ in range(ticks):
            broker.tick()
        broker.heard()
        return broker.heard_ms

    assert hears_after(0.1, 1) == 0
    assert hears_after(0.1, 1) == 100
    assert hears_after(0.4, 4) == 500
    assert hears_after(3.0, ticks) == heard_ms
    assert hears_after(0.2, 2) == heard_ms + 200


def test_who_suspected_a_broker_has_not_heard_it_all_the_time() -> None:
    """Else whoever finds it late would be taken for cut off: the others heard nothing, either."""
    broker = _Broker(0.5, 0.1)
    broker.heard()
    first = broker._first
    assert ticks_until_silent(broker) == 5
    broker.heard()
    assert broker._first > first


def test_who_is_not_in_sync_hears_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = engine_status("b", in_sync=False).model_copy(update={"kafka_silent_ms": (1, 1, 1)})
    monkeypatch.setattr(kafka_probe, "ask_peer", lambda address: peer)
    assert not others_reach_more("127.0.0.1:1", HERE, SILENT_MS)


def test_an_older_peer_says_only_whether_any_broker_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer = engine_status("b").model_copy(update={"kafka_reachable": True})
    monkeypatch.setattr(kafka_probe, "ask_peer", lambda address: peer)
    assert not others_reach_more("127.0.0.1:1", HERE, SILENT_MS)
    assert others_reach_more("127.0.0.1:1", (False, False, False), (700, 700, 700))


def test_a_change_takes_a_while_to_settle() -> None:
    probe = KafkaProbe("127.0.0.1:1,127.0.0.1:1,127.0.0.1:1", 500, 0.1)
    probe.stop()
    first, second, third = probe._brokers

    def ticks_until_settled(*answering: _Broker) -> int:
        for count in range(1, 1000):
            for broker in answering:
                broker.heard()
            probe.tick()
            if probe.settled:
                return count
        return 0

    assert 20 <= ticks_until_settled(first, second, third) <= 22
    third._last -= 1
    with_one_dead = ticks_until_settled(first, second)
    assert 300 <= with_one_dead <= 310, "who led with it, and who looks for them, gets time"
    second._last -= 1
    assert ticks_until_settled(first) == 0, "without most of them nothing can be written"
