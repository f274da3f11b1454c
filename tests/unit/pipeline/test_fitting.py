"""A record that no topic takes becomes a dead letter, the same one on every replica."""

import hashlib

from espha.pipeline.fitting import dead_letter_of, fits, shortened, size_of
from espha.protocol.sizes import CUT_BYTES, RECORD_BYTES

ID = ("espha-id", b"t:1:0")


def test_headers_count() -> None:
    value = b"x" * (RECORD_BYTES - size_of(b"", (ID,)))
    assert fits(value, (ID,))
    assert not fits(value + b"x", (ID,))


def test_an_output_that_is_too_large_says_so() -> None:
    value = b"x" * RECORD_BYTES
    cut, headers = dead_letter_of(value, (ID,), "q/out")
    told = dict(headers)
    assert cut == value[:CUT_BYTES]
    assert told["espha-id"] == b"t:1:0"
    assert told["espha-window"] == b"q/out"
    assert told["espha-reason"].startswith(b"the output has 2031629 bytes")
    assert told["espha-size"] == str(RECORD_BYTES).encode()
    assert told["espha-digest"] == hashlib.sha256(value).hexdigest().encode()


def test_a_dead_letter_that_is_too_large_keeps_its_reason() -> None:
    headers = (ID, ("espha-reason", b"y" * RECORD_BYTES))
    cut, left = shortened(b"short", headers)
    assert cut == b"short"
    assert fits(cut, left)
    assert dict(left)["espha-reason"] == b"y" * 1024
    assert dict(left)["espha-size"] == b"5"
