"""The position of an output adapter that the topic of positions keeps."""

import json
from typing import Any, cast

import pytest

from espha.adapters import acknowledged
from espha.adapters.acknowledged import Acknowledged, KeptOffset
from espha.adapters.config import ConfigError, Job
from espha.kafka.writer import Record
from espha.protocol.child_side import Control

JOB = Job("web", "", "x", cast(Any, None), "x.O", "x.P", Control())


class _Kafka:
    """A topic of positions with one record at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.record: Record | None = None
        self.did: list[str] = []
        monkeypatch.setattr(acknowledged, "FencedWriter", lambda *_: self)
        monkeypatch.setattr(acknowledged, "Offsets", lambda _: self)
        monkeypatch.setattr(acknowledged, "kept_position", self._position)

    def fence(self) -> None:
        self.did.append("fence")

    def settled(self, _: str) -> int:
        self.did.append("settled")
        return 0

    def commit(self, records: list[Record]) -> None:
        (self.record,) = records

    def _position(self, *_: object) -> dict[str, Any] | None:
        self.did.append("read")
        found: dict[str, Any] | None = json.loads(self.record.value) if self.record else None
        return found


def test_what_was_kept_is_read_back_behind_the_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = _Kafka(monkeypatch)
    first = KeptOffset(JOB, "id-1")
    assert first.now == Acknowledged("id-1")
    first.keep(7, 12)
    assert kafka.record
    assert (kafka.record.topic, kafka.record.key) == ("x.P", b"x.O web")
    kafka.did.clear()
    assert KeptOffset(JOB, "id-1").now == Acknowledged("id-1", 7, 12)
    assert kafka.did == ["fence", "settled", "read"]


def test_the_position_of_another_topic_of_that_name_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _Kafka(monkeypatch)
    KeptOffset(JOB, "id-1").keep(7)
    with pytest.raises(ConfigError, match="another topic of the name"):
        KeptOffset(JOB, "id-2")
