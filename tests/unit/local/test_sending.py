"""Lines of a pipe, sent to a peer that counts them."""

from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

from espha.adapters.socket_output.spec import OutputSocket
from espha.cli import app
from espha.local.ports import HOST, free_ports
from espha.local.sending import Sent, send
from espha.records.rows import MAX_RECORD
from support.peers import NumberedPeer


@pytest.fixture
def peer() -> Iterator[NumberedPeer]:
    made = NumberedPeer(breaks=0.01)
    yield made
    made.close()


def pipe(*chunks: bytes) -> Callable[[], bytes]:
    """Return what reads these chunks, and then nothing more."""
    left = [*chunks, b""]
    return lambda: left.pop(0)


def target(peer: NumberedPeer) -> OutputSocket:
    return OutputSocket(connect=peer.address, ids=True, timeout_s=5)


def test_each_line_comes_once_although_the_peer_breaks_off(peer: NumberedPeer) -> None:
    text = "".join(f"{number},1\n" for number in range(2000)).encode()
    chunks = [text[start : start + 1000] for start in range(0, len(text), 1000)]
    said: list[str] = []
    assert send(pipe(*chunks), target(peer), "night", said.append) == Sent(2000, 0)
    assert peer.rows == [f"{number},1" for number in range(2000)]
    assert peer.streams == {"night"}
    assert said


def test_the_same_input_again_is_not_sent_again(peer: NumberedPeer) -> None:
    send(pipe(b"a\nb\n"), target(peer), "s", lambda _: None)
    again = send(pipe(b"a\nb\nc"), target(peer), "s", lambda _: None)
    assert again == Sent(lines=3, before=2)
    assert peer.rows == ["a", "b", "c"]


def test_a_line_that_is_too_long_for_a_row_is_one_for_the_peer_too(peer: NumberedPeer) -> None:
    send(pipe(b"x" * (5 * MAX_RECORD), b"\nb\n"), target(peer), "s", lambda _: None)
    first, second = peer.rows
    assert len(first) == MAX_RECORD + 1
    assert second == "b"


def test_no_input_needs_no_peer() -> None:
    nobody = OutputSocket(connect=f"{HOST}:{free_ports(1)[0]}", ids=True)
    assert send(pipe(), nobody, "s", lambda _: None) == Sent(0, 0)


def test_the_command_sends_its_standard_input(peer: NumberedPeer) -> None:
    words = ["adapter", "send", peer.address, "--stream", "s"]
    ended = CliRunner().invoke(app, words, input="a\nb\n")
    assert ended.exit_code == 0
    assert "2 lines of stream s are published" in ended.stderr
    assert peer.rows == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "--stream", "s"], "nowhere is not HOST:PORT"),
        (["localhost:1", "--stream", "a b"], "--stream 'a b': up to 100 letters, digits, _ . : -"),
    ],
)
def test_a_wrong_place_or_name_is_refused(words: list[str], said: str) -> None:
    ended = CliRunner().invoke(app, ["adapter", "send", *words], input="a\n")
    assert ended.exit_code == 2
    assert said in ended.stderr
