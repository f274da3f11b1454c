"""How a child notes what it does."""

import pytest

from espha.protocol.activity import Doing
from espha.protocol.states import Step


def turn(doing: Doing) -> int:
    told = doing.told()
    assert told is not None
    return told.turn


@pytest.mark.parametrize("error", [None, OSError("away")])
def test_behind_a_step_inside_of_another_one_that_one_begins_anew(error: OSError | None) -> None:
    doing = Doing()
    doing.begin(Step.WAITING)
    before = turn(doing)
    try:
        with doing.within(Step.READING):
            if error:
                raise error
    except OSError:
        pass
    told = doing.told()
    assert told is not None
    assert (told.step, told.turn) == (Step.WAITING, before + 2)


def test_behind_a_step_that_stands_alone_nothing_is_done() -> None:
    doing = Doing()
    with doing.within(Step.SOURCE):
        assert turn(doing) == 0
        doing.moved()
        assert turn(doing) == 1
    assert doing.told() is None
    doing.moved()
    assert doing.told() is None


def test_steps_that_stand_alone_are_told_from_each_other() -> None:
    """Whoever listens hears of some only: two that look the same would be one that lasts."""
    doing, turns = Doing(), []
    for _ in range(3):
        with doing.within(Step.SOURCE):
            turns.append(turn(doing))
    assert turns == [0, 1, 2]
