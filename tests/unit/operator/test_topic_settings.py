"""Which differences between a topic and the spec may be set right."""

import pytest

from espha.protocol.sizes import MESSAGE_BYTES
from espha_operator.reconcile.topics import Difference, differences, loses_nothing

UNLIMITED, HOUR, DAY = "-1", "3600000", "86400000"


@pytest.mark.parametrize(
    ("key", "there", "wanted", "safe"),
    [
        ("retention.ms", HOUR, DAY, True),
        ("retention.ms", HOUR, UNLIMITED, True),
        ("retention.ms", DAY, HOUR, False),
        ("retention.ms", UNLIMITED, DAY, False),
        ("retention.bytes", "1000", UNLIMITED, True),
        ("retention.bytes", UNLIMITED, "1000", False),
        ("min.insync.replicas", "1", "2", True),
        ("min.insync.replicas", "2", "1", False),
        ("min.insync.replicas", "2", "3", False),
        ("cleanup.policy", "compact", "delete", False),
        ("max.message.bytes", "1000", "2000", True),
    ],
)
def test_only_what_loses_nothing_is_set(key: str, there: str, wanted: str, safe: bool) -> None:
    """Of three copies two are in sync: to ask for three would stop all commits."""
    assert loses_nothing(Difference(key, wanted, there), in_sync=2) is safe


def test_a_kafka_that_lacks_a_setting_has_it_not_wrong() -> None:
    """Servers with Kafka's protocol do not all have all of its settings."""
    wanted = {"retention.ms": HOUR, "retention.bytes": "-1", "cleanup.policy": "delete"}
    there = {"retention.ms": DAY, "cleanup.policy": None}
    assert [one.text for one in differences(wanted, there)] == [
        "retention.ms is 86400000, the spec says 3600000."
    ]


@pytest.mark.parametrize(("there", "count"), [(MESSAGE_BYTES - 1, 1), (MESSAGE_BYTES + 1, 0)])
def test_room_for_larger_messages_is_no_difference(there: int, count: int) -> None:
    wanted = {"max.message.bytes": str(MESSAGE_BYTES)}
    assert len(differences(wanted, {"max.message.bytes": str(there)})) == count
