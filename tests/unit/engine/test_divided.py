"""Partitions that are added while an engine runs."""

from structlog.testing import capture_logs

from espha.engine.divided import DividedTopics
from espha.kafka.reader import LogError


def test_partitions_that_are_added_are_told_once() -> None:
    topics = DividedTopics(["t.M", "t.I", "t.J"])
    counts = {"t.M": 1, "t.I": 1, "t.J": 1}
    with capture_logs() as said:
        topics.look(counts.__getitem__)
    assert (topics.facts().divided_topics, topics.facts().divided_topic, said) == (0, "", [])
    counts["t.J"] = 3
    with capture_logs() as said:
        topics.look(counts.__getitem__)
        topics.look(counts.__getitem__)
    assert (topics.facts().divided_topics, topics.facts().divided_topic) == (1, "t.J")
    assert [(one["log_level"], one["topics"]) for one in said] == [("error", {"t.J": 3})]
    counts["t.J"] = 1
    topics.look(counts.__getitem__)
    assert topics.facts().divided_topics == 0, "it was made anew"


def test_where_nobody_answers_what_was_found_stays() -> None:
    topics = DividedTopics(["t.I"])
    topics.look({"t.I": 2}.__getitem__)

    def nobody(topic: str) -> int:
        raise LogError(f"topic {topic}: timed out")

    topics.look(nobody)
    assert topics.facts().divided_topic == "t.I"
