"""A default deployment lasts for ever on its default volumes: the sum of what stays fits."""

import pytest

from espha.protocol import brokers
from espha_operator.reconcile.room import output_bytes, segment_bytes
from espha_operator.reconcile.topics import wanted_settings
from unit.operator.samples import deployment

GIB = 1 << 30
MIB = 1 << 20
EXTERNAL = {"external": {"bootstrapServers": ["kafka:9092"]}}


def test_what_stays_on_a_default_volume_leaves_room_for_what_engines_need() -> None:
    """Worst case: five topics of outputs, each segment full, what is deleted not gone yet."""
    made = deployment()
    settings = brokers.broker_settings(3, 3, 2)
    segment = segment_bytes(made) or 0
    outputs = 5 * (output_bytes(made, 5) + 2 * segment)
    metadata = int(settings["metadata.max.retention.bytes"]) + 2 * int(
        settings["metadata.log.segment.bytes"]
    )
    transactions = 3 * int(brokers.transaction_topic(2)["segment.bytes"]) * 2
    positions = 3 * 8 * MIB
    left = GIB - outputs - metadata - transactions - positions
    # Inputs and order log: a minute between snapshots, three of them, and half a minute more.
    assert left > 4.5 * 60 * 1_000_000


@pytest.mark.parametrize(
    ("size", "segment", "each"),
    [("100Mi", 4 * MIB, 11 * MIB), ("1Gi", 16 * MIB, 137 * MIB), ("1Ti", 256 * MIB, 157030 * MIB)],
)
def test_shares_follow_the_volume(size: str, segment: int, each: int) -> None:
    made = deployment(kafka={"storage": {"size": size}})
    assert segment_bytes(made) == segment
    assert output_bytes(made, 2) // MIB * MIB == each


@pytest.mark.parametrize(
    ("kafka", "topics", "kept_ms", "kept_bytes"),
    [
        ({}, {}, "-1", str(output_bytes(deployment(), 1))),
        ({}, {"outputRetention": "2d"}, str(2 * 86_400_000), "-1"),
        ({}, {"outputRetention": "unlimited"}, "-1", "-1"),
        ({}, {"retention": "unlimited"}, "-1", "-1"),
        ({}, {"retention": "1d"}, str(86_400_000), "-1"),
        (EXTERNAL, {}, str(7 * 86_400_000), "-1"),
        (EXTERNAL, {"retention": "unlimited"}, "-1", "-1"),
    ],
)
def test_outputs_are_kept_as_the_spec_says(
    kafka: dict[str, object], topics: dict[str, object], kept_ms: str, kept_bytes: str
) -> None:
    settings = wanted_settings(deployment(kafka=kafka, topics=topics), "p.O", ["p.O"])
    assert (settings["retention.ms"], settings["retention.bytes"]) == (kept_ms, kept_bytes)


def test_what_engines_need_is_kept_by_neither_time_nor_size() -> None:
    settings = wanted_settings(deployment(), "p.M", ["p.O"])
    assert (settings["retention.ms"], settings["retention.bytes"]) == ("-1", "-1")
    assert settings["segment.bytes"] == str(16 * MIB)


def test_the_segments_of_others_are_theirs() -> None:
    assert segment_bytes(deployment(kafka=EXTERNAL)) is None
    assert segment_bytes(deployment(kafka={"config": {"log.segment.bytes": "1048576"}})) is None


def test_positions_of_adapters_are_compacted() -> None:
    assert wanted_settings(deployment(), "p.P")["cleanup.policy"] == "compact"
