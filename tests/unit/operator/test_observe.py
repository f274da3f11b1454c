"""What the operator reads in a supervisor's status."""

from typing import Any

import pytest

from espha_operator.reconcile.observe import engine_facts
from espha_operator.status.facts import EngineFacts


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        ({}, EngineFacts("e", "starting", False)),
        (
            {"state": "standby", "in_sync": True, "sequence": 9, "epoch": 2, "snapshot_age_s": 0},
            EngineFacts("e", "standby", True, 9, 2, snapshot_age=0.0),
        ),
        (
            {"state": "diverged", "in_sync": False, "message": "m", "diverged": "record 9"},
            EngineFacts("e", "diverged", False, message="m", diverged="record 9"),
        ),
    ],
)
def test_engine_facts(told: dict[str, Any], facts: EngineFacts) -> None:
    assert engine_facts("e", told) == facts
