"""A broker that has just begun to lead a partition does not know yet where it ends."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from espha.kafka import reader
from espha.kafka.reader import Ends, LogError, Offsets

UNKNOWN = -1001


class Admin:
    """Answers with these offsets, one after the other; the last one for ever."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = list(offsets)

    def list_offsets(self, wanted: dict[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        """Answer at once."""
        offset = self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(offset=offset))
        return dict.fromkeys(wanted, future)


def offsets(monkeypatch: pytest.MonkeyPatch, *answers: int) -> Offsets:
    admin = Admin(*answers)
    monkeypatch.setattr(reader, "AdminClient", lambda settings: admin)
    monkeypatch.setattr(reader, "_ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(reader, "_ASK_AGAIN_AT_MOST_S", 0.001)
    return Offsets("b")


def test_it_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offsets(monkeypatch, UNKNOWN, UNKNOWN, 7).end("t") == 7
    assert offsets(monkeypatch, 5, UNKNOWN, 5, 9).ends("t") == Ends(5, 9)


def test_one_that_never_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LogError, match=r"topic t: .*high watermark"):
        offsets(monkeypatch, UNKNOWN).end("t", limit_s=0.05)
