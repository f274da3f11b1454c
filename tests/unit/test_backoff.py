"""Pauses grow up to a limit, and begin again when something has worked."""

from espha.backoff import Backoff


def test_pauses_grow_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.next() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_what_has_worked_begins_again() -> None:
    backoff = Backoff(0.5, 3.0)
    backoff.next()
    backoff.reset()
    assert backoff.next() == 0.5
