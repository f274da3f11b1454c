"""How long the operator waits between two steps."""

from espha_operator.reconcile.pauses import Pauses


def test_failures_are_tried_again_less_and_less_often() -> None:
    pauses = Pauses(1.0, 45.0)
    assert pauses.after(True) == 1.0
    waits = [pauses.after(False) for _ in range(12)]
    for number, wait in enumerate(waits):
        whole = min(45.0, 2.0**number)
        assert whole / 2 <= wait <= whole
    assert pauses.after(True) == 1.0
    assert pauses.after(False) <= 1.0


def test_who_failed_together_does_not_come_back_together() -> None:
    waits = {Pauses(1.0, 45.0).after(False) for _ in range(20)}
    assert len(waits) > 1
