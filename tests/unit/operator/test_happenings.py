"""What is told of two statuses, one after the other."""

import pytest

from espha_operator.api import Condition, Status
from espha_operator.status.happenings import by_status


def status(**conditions: str) -> Status:
    """A status with conditions, given as `True:Reason`."""
    return Status(
        conditions=[
            Condition(
                type=name,
                status="True" if told.startswith("True") else "False",
                reason=told.split(":")[1],
                message="m",
                last_transition_time="t",
                observed_generation=1,
            )
            for name, told in {"Ready": "True:AllReady", **conditions}.items()
        ]
    )


@pytest.mark.parametrize(
    ("name", "before", "after", "told"),
    [
        ("Available", "True:Committing", "True:Committing", []),
        ("Available", "True:Committing", "False:NoAnswer", [("NoAnswer", False)]),
        ("Available", "False:NoAnswer", "False:NoAnswer", []),
        ("Available", "False:NoAnswer", "False:NotCommitting", [("NotCommitting", False)]),
        ("Available", "False:NoAnswer", "True:Committing", [("Available", True)]),
        ("ReplicasInSync", "True:InSync", "False:Behind", []),
        ("Stalled", "False:Moving", "True:ApplyFailed", [("ApplyFailed", False)]),
        ("Stalled", "True:ApplyFailed", "False:Moving", []),
        ("Paused", "False:NotPaused", "True:Paused", [("Paused", False)]),
        ("Paused", "True:Paused", "False:NotPaused", [("NotPaused", True)]),
        ("SnapshotsInReach", "True:InReach", "True:Unlimited", []),
        ("Unknown", "True:A", "False:B", []),
        ("ModelRolledOut", "True:RolledOut", "False:InShadow", [("InShadow", True)]),
        ("ModelRolledOut", "False:InShadow", "False:Switching", [("Switching", True)]),
        ("ModelRolledOut", "False:Switching", "True:RolledOut", [("ModelRolledOut", True)]),
        ("VolumesFit", "True:AsWanted", "False:ForeignVolumes", [("ForeignVolumes", False)]),
        ("VolumesFit", "True:Growing", "False:CannotGrow", [("CannotGrow", False)]),
        ("StorageLow", "False:Enough", "True:Low", [("Low", False)]),
        ("StorageLow", "True:Low", "True:Critical", [("Critical", False)]),
        ("StorageLow", "True:Critical", "False:Enough", [("Enough", True)]),
    ],
)
def test_changes_are_told_once(
    name: str, before: str, after: str, told: list[tuple[str, bool]]
) -> None:
    seen = by_status(status(**{name: before}), status(**{name: after}))
    assert [(one.reason, one.good) for one in seen] == told


def test_what_several_conditions_say_is_told_once() -> None:
    well = status(ModelValid="True:Valid", Stalled="False:Moving")
    bad = status(ModelValid="False:InvalidModel", Stalled="True:InvalidModel")
    assert [one.reason for one in by_status(well, bad)] == ["InvalidModel"]


def test_a_condition_that_an_older_version_did_not_have_is_no_news_while_it_is_well() -> None:
    assert list(by_status(status(), status(Available="True:Committing"))) == []
    seen = by_status(status(), status(Available="False:NoActiveEngine"))
    assert [one.reason for one in seen] == ["NoActiveEngine"]
