"""Secrets of adapters."""

from pathlib import Path

import pytest

from espha.adapters.config import ConfigError
from espha.adapters.secrets import authorization_header, needed, secret


def test_a_secret_stands_in_a_variable_or_in_the_file_that_one_names(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("in the file\n")
    assert secret("X", {"X": "told"}) == "told"
    assert secret("X", {"X": "told", "X_FILE": str(file)}) == "in the file"
    assert secret("X", {}) == ""


def test_a_file_that_cannot_be_read_is_named_and_nothing_of_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"X_FILE=.*nothing: No such file"):
        secret("X", {"X_FILE": str(tmp_path / "nothing")})
    file = tmp_path / "binary"
    file.write_bytes(b"hidden\xff")
    with pytest.raises(ConfigError, match="not text in UTF-8") as refusal:
        secret("X", {"X_FILE": str(file)})
    assert "hidden" not in str(refusal.value)


def test_what_cannot_be_missing_is_asked_for() -> None:
    with pytest.raises(ConfigError, match="the server needs X: give it in the environment"):
        needed("X", "the server", {})


@pytest.mark.parametrize(
    "given", ["Bearer hidden\n", "Bearer a\r\nhidden", "a\0hidden", "hidden €"]
)
def test_what_no_header_can_hold_is_refused_without_saying_it(given: str) -> None:
    with pytest.raises(ConfigError, match=r"^HTTP_AUTHORIZATION cannot be a header") as refusal:
        authorization_header({"HTTP_AUTHORIZATION": given})
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize("given", ["", "Bearer abc.def-_~+/==", "Basic \xe9\t:"])
def test_what_a_header_can_hold_is_sent_as_it_is(given: str) -> None:
    assert authorization_header({"HTTP_AUTHORIZATION": given}) == given
