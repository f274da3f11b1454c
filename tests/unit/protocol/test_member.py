"""What a znode says of its supervisor."""

import pytest
from pydantic import ValidationError

from espha.protocol.member import MemberInfo


def test_a_znode_is_read_as_it_was_written() -> None:
    member = MemberInfo(name="a", address="10.0.0.1:7", session=1 << 60, password="0f" * 8)
    assert MemberInfo.model_validate_json(member.encode()) == member


def test_a_password_is_not_shown() -> None:
    assert "0f0f" not in repr(MemberInfo(name="a", password="0f0f"))  # noqa: S106 - a test's


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b"{}", b'{"name": 7}'])
def test_another_text_is_no_member(data: bytes) -> None:
    with pytest.raises(ValidationError):
        MemberInfo.model_validate_json(data)
