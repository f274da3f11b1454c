"""Message ids: a topic's name may hold what also separates."""

import pytest

from espha.protocol.records import MessageId


@pytest.mark.parametrize("topic", ["p.M", "p.q.w.I", "a:b"])
def test_an_id_is_read_as_it_was_written(topic: str) -> None:
    message_id = MessageId(topic, 17, 3)
    assert message_id.encode() == f"{topic}:17:3".encode()
    assert MessageId.parse(message_id.encode()) == message_id


@pytest.mark.parametrize("value", [b"", b"p.M:1", b"p.M:x:0", b"\xff:1:0"])
def test_another_text_is_no_id(value: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        MessageId.parse(value)
