"""Ticks of a timer, with their position."""

import json

import pytest

from espha.adapters.config import ConfigError
from espha.adapters.timer_input.run import Position, Ticks, position_of
from espha.adapters.timer_input.spec import InputTimer
from espha.reader import read_project

WINDOW = read_project(
    b'<project name="p"><contqueries><contquery name="q"><windows>'
    b'<window-source name="w" index="pi_EMPTY"><schema><fields>'
    b'<field name="id" type="int64" key="true"/><field name="time" type="stamp"/>'
    b'<field name="label" type="string"/>'
    b"</fields></schema></window-source></windows></contquery></contqueries></project>"
).windows["q/w"]
EACH_SECOND = InputTimer(interval=1, label="tick")


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 10_000

    def __call__(self) -> int:
        """Return the time."""
        return self.now


def texts(ticks: Ticks) -> list[str]:
    return [value.decode().replace(" ", "") for value, _ in ticks.poll()]


def test_each_tick_is_an_event_and_none_is_lost_or_double_over_a_restart() -> None:
    clock = Clock()
    ticks = Ticks(EACH_SECOND, WINDOW, Position("t"), clock)
    assert texts(ticks) == ["I,N,0,10000000,tick"]
    assert texts(ticks) == []
    clock.now = 12_500
    assert texts(ticks) == ["I,N,1,11000000,tick", "I,N,2,12000000,tick"]
    kept = json.loads(ticks.position.to_header())
    clock.now = 14_000
    after = Ticks(EACH_SECOND, WINDOW, position_of("t", kept), clock)
    assert texts(after) == ["I,N,3,13000000,tick", "I,N,4,14000000,tick"]


def test_a_standby_goes_on_where_the_active_one_was() -> None:
    clock = Clock()
    active, standby = (Ticks(EACH_SECOND, WINDOW, Position("t"), clock) for _ in range(2))
    clock.now = 11_000
    active.poll()
    standby.advance(json.loads(active.position.to_header()))
    clock.now = 12_000
    assert texts(standby) == texts(active)


def test_each_event_carries_the_position_behind_it() -> None:
    clock = Clock()
    ticks = Ticks(EACH_SECOND, WINDOW, Position("t", 10_000), clock)
    clock.now = 11_000
    assert [position for _, position in ticks.poll()] == [
        Position("t", 10_000, 1, 1),
        Position("t", 10_000, 2, 2),
    ]


def test_there_are_so_many_events_at_most() -> None:
    clock = Clock()
    ticks = Ticks(InputTimer(interval=1, max_events=2), WINDOW, Position("t", 10_000), clock)
    clock.now = 100_000
    assert len(ticks.poll()) == 2
    assert ticks.poll() == []


def test_after_a_long_pause_few_at_a_time_are_made_up() -> None:
    clock = Clock()
    given = InputTimer(interval=1, unit="millisecond")
    ticks = Ticks(given, WINDOW, Position("t", 10_000), clock)
    clock.now = 12_499
    assert [len(ticks.poll()) for _ in range(4)] == [1000, 1000, 500, 0]


def test_with_a_base_ticks_are_whole_intervals_away_from_it() -> None:
    clock = Clock()
    given = InputTimer(interval=1, unit="minute", base="1970-01-01 00:00:05")
    ticks = Ticks(given, WINDOW, Position("t"), clock)
    assert texts(ticks) == []
    clock.now = 65_000
    assert texts(ticks) == ["I,N,0,65000000,"]


def test_an_interval_of_too_many_years_is_refused() -> None:
    with pytest.raises(ConfigError, match="from 1 to 1200"):
        Ticks(InputTimer(interval=5000, unit="year"), WINDOW, Position("t"))


def test_what_waits_are_ticks_that_have_passed() -> None:
    clock = Clock()
    ticks = Ticks(EACH_SECOND, WINDOW, Position("t"), clock)
    assert ticks.behind().amount == 0
    texts(ticks)
    clock.now = 13_500
    assert ticks.behind().amount == 3
    few = Ticks(EACH_SECOND.model_copy(update={"max_events": 2}), WINDOW, ticks.position, clock)
    assert few.behind().amount == 1
