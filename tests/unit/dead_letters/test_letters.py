"""What a record of the dead letters' topic says, and which of them are wanted."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from espha.adapters.formats.refused import not_a_row
from espha.cli import app
from espha.dead_letters.command import shown, since_ms, table
from espha.dead_letters.letters import Letter, LetterKind, Wanted, read_letter
from espha.engine.quarantine import _sentence
from espha.pipeline.fitting import dead_letter_of
from espha.protocol.records import MessageId


class Message:
    """A record as the client gives it."""

    def __init__(self, value: bytes, **headers: bytes) -> None:
        self._value, self._headers = value, headers

    def value(self) -> bytes:
        """Return the value."""
        return self._value

    def headers(self) -> list[tuple[str, bytes]]:
        """Return names and values."""
        return [(name.replace("_", "-"), value) for name, value in self._headers.items()]

    def offset(self) -> int:
        """Return where it is."""
        return 7

    def timestamp(self) -> tuple[int, int]:
        """Return its kind and the moment."""
        return 1, 1_000


def letter(value: bytes = b"I,N,x", **headers: bytes) -> Letter:
    known = {"espha_id": b"t.p.q.in.I:5:0", "espha_window": b"q/in", "espha_reason": b"Field: no"}
    found: Any = Message(value, **{**known, **headers})
    return read_letter(found)


def test_a_letter_says_where_it_is_from_and_why() -> None:
    assert letter() == Letter(
        offset=7,
        time_ms=1_000,
        id=MessageId("t.p.q.in.I", 5, 0),
        kind=LetterKind.ROW,
        window="q/in",
        reason="Field: no",
        payload=b"I,N,x",
        size=5,
        digest="",
    )


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (_sentence(2, "x").encode(), LetterKind.SET_ASIDE),
        (dict(dead_letter_of(b"x" * 9, (), "q/w")[1])["espha-reason"], LetterKind.OUTPUT),
        (b"set aside after it had ended 2 engines: x", LetterKind.SET_ASIDE),
        (b"the output has 3000000 bytes, 2 at most can be written", LetterKind.OUTPUT),
        (b"", LetterKind.ROW),
    ],
)
def test_reasons_tell_the_kind(reason: bytes, kind: LetterKind) -> None:
    assert letter(espha_reason=reason).kind is kind


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_an_adapter_could_not_read_has_its_own_reason(form: str) -> None:
    found = letter(not_a_row("topic x, offset 3: no object", b"{,\xff", form))
    assert (found.kind, found.reason, found.payload) == (
        LetterKind.UNREAD,
        "topic x, offset 3: no object",
        b"{,\xff",
    )


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"not a row",
        b"not a row,",
        b'{"not a row',
        b'["not a row"]',
        b'{"a": "not a row"}',
        b"\xff",
    ],
)
def test_any_value_is_a_letter(value: bytes) -> None:
    assert letter(value, espha_id=b"\xff", espha_size=b"x").payload == value


def test_a_letter_that_was_cut_says_how_large_it_was() -> None:
    found = letter(espha_size=b"3000000", espha_digest=b"abc")
    assert (found.size, found.digest) == (3_000_000, "abc")


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Wanted(), True),
        (Wanted(window="in"), True),
        (Wanted(window="q/in"), True),
        (Wanted(window="n"), False),
        (Wanted(source="q.in"), True),
        (Wanted(source="other"), False),
        (Wanted(reason="fIELD"), True),
        (Wanted(reason="type"), False),
        (Wanted(since_ms=1_000), True),
        (Wanted(since_ms=1_001), False),
    ],
)
def test_filters(wanted: Wanted, fits: bool) -> None:
    assert wanted.fits(letter()) is fits


def test_moments() -> None:
    assert since_ms("") == 0
    assert since_ms("2h", now_s=10_000) == 2_800_000
    noon = int(datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp() * 1000)
    assert since_ms("2026-11-23T12:00") == since_ms("2026-11-23T13:00+01:00") == noon
    with pytest.raises(ValueError, match="'soon' is no moment; give 15m"):
        since_ms("soon")


def test_the_table_shows_no_characters_that_do_something() -> None:
    assert shown(b"a\x1b[2Jb\n\xff") == "a·[2Jb·\N{REPLACEMENT CHARACTER}"
    assert shown(b"x" * 500) == "x" * 60 + "…"
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(table([letter(b"[bold]\x07", espha_reason=b"a \x1b[31mreason")]))
    text = console.export_text()
    assert "[bold]·" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["replay"], "give offsets, or --all"),
        (["replay", "1", "--all"], "give offsets, or --all"),
        (["replay", "1", "--reason", "x"], "give offsets, or --all"),
        (["list", "--since", "soon"], "--since: 'soon' is no moment"),
        (["list", "--model", "/nowhere.xml"], "/nowhere.xml: No such file"),
    ],
)
def test_wrong_command_lines_end_with_2(words: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["dlq", *words, "--bootstrap", "nowhere:1"])
    assert result.exit_code == 2
    assert sentence in result.output
